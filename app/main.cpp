#include <CLI/CLI.hpp>
#include <iostream>

#include "app/serve.hpp"
#include "app/serve_flags.hpp"

/// The `troupe` command. Exit codes: 0 done, 1 it failed and said why, 2 the command line is wrong.
namespace {

using namespace troupe;

int fail(const error& failure, int code) {
  std::cerr << "troupe: " << failure.to_string() << '\n';
  return code;
}

result<config::settings> settings_of(const app::serve_flags& flags) {
  const auto environment = config::process_environment();
  for (const auto& warning : config::unknown_variables(environment))
    std::cerr << "troupe: warning: " << warning << '\n';
  auto settings = config::load(flags.config_file, environment, flags.values);
  if (settings && settings->model.path.empty())
    return error{error_kind::invalid, "no model is named: give one with --model PATH", "model.path"};
  return settings;
}

int check_config(const std::string& file) {
  auto loaded = config::load(file, config::process_environment(), {});
  if (!loaded) return fail(loaded.error(), 1);
  std::cout << file << " is sound. With the environment and the defaults it means:\n";
  for (const auto& option : config::options()) std::cout << option.path << ": " << option.show(*loaded) << '\n';
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App program("Troupe serves Mixture-of-Experts language models to many clients at once.", "troupe");
  program.set_version_flag("--version", "troupe " TROUPE_VERSION);
  program.require_subcommand(1);
  int code = 0;

  app::serve_flags flags;
  CLI::App& serve = *program.add_subcommand("serve", "Serves a model over HTTP and WebSocket");
  app::add_serve_flags(serve, flags);
  serve.final_callback([&] {
    auto settings = settings_of(flags);
    code = settings ? app::serve(*settings) : fail(settings.error(), 2);
  });

  std::string config_file;
  CLI::App& check =
      *program.add_subcommand("check-config", "Reads a configuration file and says what is wrong with it");
  check.add_option("FILE", config_file, "YAML file")->required();
  check.final_callback([&] { code = check_config(config_file); });

  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& failure) {
    return program.exit(failure) == 0 ? 0 : 2;
  }
  return code;
}
