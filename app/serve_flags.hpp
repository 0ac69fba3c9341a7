#pragma once

#include <optional>
#include <string>

#include "config/load.hpp"

namespace CLI {
class App;
}

/// The command line of `troupe serve`, taken from the options table, so that --help shows every flag with its default
/// and its environment variable.
namespace troupe::app {

/// Filled when the command line is parsed; must outlive the parser.
struct serve_flags {
  std::optional<std::string> config_file;
  config::overrides values;
};

void add_serve_flags(CLI::App& command, serve_flags& flags);

}  // namespace troupe::app
