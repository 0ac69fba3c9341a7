#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <new>

#include "app/inspect.hpp"
#include "app/machine.hpp"
#include "app/serve.hpp"
#include "app/serve_flags.hpp"
#include "app/upcycle.hpp"

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

/// One line that is written over; on a terminal only.
void show_written(std::uint64_t done, std::uint64_t total) {
  if (isatty(STDOUT_FILENO) != 0) std::cout << '\r' << (done >> 20) << " of " << (total >> 20) << " MiB" << std::flush;
}

int upcycle(const app::upcycle_options& options) {
  app::termination_signals signals;
  auto written = app::upcycle(options, [&](std::uint64_t done, std::uint64_t total) {
    show_written(done, total);
    return !signals.wait(std::chrono::milliseconds{0});
  });
  if (isatty(STDOUT_FILENO) != 0) std::cout << '\n';
  if (!written) return fail(written.error(), 1);
  std::cout << "Wrote " << options.to.string() << ": " << options.experts << " experts, " << options.top_k
            << " for each token\n";
  return 0;
}

void add_upcycle(CLI::App& program, app::upcycle_options& options, int& code) {
  CLI::App& command = *program.add_subcommand("upcycle", "Writes a dense model as a Mixture of Experts of its copies");
  command.add_option("FROM", options.from, "Dense model: a folder with config.json, or a .gguf file")->required();
  command.add_option("TO", options.to, "New model, of the same kind")->required();
  command.add_option("--experts", options.experts, "Experts of each layer")->capture_default_str();
  command.add_option("--top-k", options.top_k, "Experts that compute each token")->capture_default_str();
  command.add_option("--seed", options.seed, "Of the routers' weights")->capture_default_str();
  command.final_callback([&] { code = upcycle(options); });
}

}  // namespace

int main(int argc, char** argv) {
  app::make_output_safe();
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

  std::string inspected;
  CLI::App& inspect = *program.add_subcommand("inspect", "Checks a model and says what it is");
  inspect.add_option("MODEL", inspected, "A folder with config.json, or a .gguf file")->required();
  inspect.final_callback([&] {
    auto shown = app::inspect(inspected, std::cout);
    code = shown ? 0 : fail(shown.error(), 1);
  });

  app::upcycle_options upcycling;
  add_upcycle(program, upcycling, code);

  try {
    program.parse(argc, argv);
  } catch (const CLI::ExtrasError&) {
    std::string unknown;
    for (const auto& argument : program.remaining(true)) unknown += ' ' + argument;
    return fail({error_kind::invalid, "there is no such argument:" + unknown + "; --help lists all", {}}, 2);
  } catch (const CLI::RequiredError& failure) {
    if (argc < 2 || argv[1][0] == '-' || !program.get_subcommands().empty()) return program.exit(failure), 2;
    return fail({error_kind::invalid, "there is no command '" + std::string(argv[1]) + "'; --help lists all", {}}, 2);
  } catch (const CLI::ParseError& failure) {
    return program.exit(failure) == 0 ? 0 : 2;
  } catch (const std::bad_alloc&) {
    return fail({error_kind::overloaded, "there is not enough memory to start", {}}, 1);
  } catch (const std::exception& failure) {
    return fail({error_kind::internal, failure.what(), {}}, 1);
  }
  return code;
}
