#include "app/serve_flags.hpp"

#include <CLI/CLI.hpp>
#include <memory>

#include "config/options.hpp"

namespace troupe::app {
namespace {

std::string description(const config::option& option) {
  std::string text = option.help + " [";
  if (!option.range.empty() && !option.is_switch()) text += option.range + "; ";
  text += option.default_text.empty() ? "no default" : "default " + option.default_text;
  return text + "; " + option.environment + "]";
}

/// "server.port" belongs to the group "Server".
std::string group_of(const config::option& option) {
  std::string name = option.path.substr(0, option.path.find('.'));
  name[0] = static_cast<char>(name[0] - 'a' + 'A');
  return name;
}

/// "--flag,--alias" as CLI11 spells a switch that can be turned off: "--flag,--alias,!--no-flag,!--no-alias".
std::string switch_names(const std::string& flags) {
  std::string names = flags;
  for (std::size_t start = 0; start < flags.size();) {
    const std::size_t comma = std::min(flags.find(',', start), flags.size());
    const std::string flag = flags.substr(start, comma - start);
    if (flag.starts_with("--")) names += ",!--no-" + flag.substr(2);
    start = comma + 1;
  }
  return names;
}

/// CLI11 marks the names that turn a switch off with what they set.
class plain_formatter : public CLI::Formatter {
 public:
  std::string make_option_name(const CLI::Option* option, bool positional) const override {
    std::string name = CLI::Formatter::make_option_name(option, positional);
    constexpr std::string_view mark = "{false}";
    for (auto at = name.find(mark); at != std::string::npos; at = name.find(mark)) name.erase(at, mark.size());
    return name;
  }
};

}  // namespace

void add_serve_flags(CLI::App& command, serve_flags& flags) {
  command.formatter(std::make_shared<plain_formatter>());
  command.add_option("--config", flags.config_file, "YAML file; environment variables and flags override it.")
      ->type_name("FILE");
  for (const config::option& option : config::options()) {
    CLI::Option* added = nullptr;
    if (option.is_switch()) {
      added = command.add_flag_function(
          switch_names(option.flags),
          [&flags, path = option.path](std::int64_t times) {
            flags.values.emplace_back(path, times > 0 ? "true" : "false");
          },
          description(option));
    } else {
      added = command.add_option_function<std::string>(
          option.flags,
          [&flags, path = option.path](const std::string& text) { flags.values.emplace_back(path, text); },
          description(option));
      added->type_name(option.type);
    }
    added->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)->group(group_of(option));
  }
}

}  // namespace troupe::app
