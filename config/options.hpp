#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "config/settings.hpp"

/// Every option of `troupe serve` described once, so that the YAML file, the environment, the command line, `--help`
/// and docs/configuration.md cannot disagree. The command line registers `flags` of each entry and hands texts to
/// `load`.
namespace troupe::config {

struct option {
  std::string path;         ///< In the YAML file: "server.port".
  std::string flags;        ///< "--port", or with aliases "--max-num-seqs,--max-batch-size"; the first is the main one.
  std::string environment;  ///< "TROUPE_SERVER_PORT".
  std::string type;         ///< For people: "integer", "duration", "size", "boolean", "text", "choice".
  std::string range;        ///< For people: "1 to 65535", "fp32, bf16 or auto"; may be empty.
  std::string default_text;  ///< As it would be written in the file; may be empty.
  std::string help;          ///< One sentence.

  /// Parses, checks the range and stores. The error has no place: the caller knows where the text came from.
  std::function<result<void>(settings&, std::string_view text)> set;
  std::function<std::string(const settings&)> show;  ///< The value as it would be written in the file.

  bool is_switch() const { return type == "boolean"; }  ///< On the command line: --flag and --no-flag.
  std::string main_flag() const { return flags.substr(0, flags.find(',')); }
};

/// All options, in the order in which help and documentation list them.
std::span<const option> options();

/// The option with this YAML path, or null.
const option* find_option(std::string_view path);

/// The candidate that `word` probably meant to spell (edit distance of at most a third of its length), or empty.
std::string_view closest(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace troupe::config
