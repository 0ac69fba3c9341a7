#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "config/options.hpp"
#include "config/settings.hpp"

/// Settings come from four places that override each other: defaults, YAML file, environment, command line. Whatever is
/// wrong in any of them is reported with its place (file, line and key; variable; flag) and what to write instead.
namespace troupe::config {

/// Environment variables by name. Only names in the options table are read.
using environment = std::map<std::string, std::string>;

/// The TROUPE_* variables of this process.
environment process_environment();

/// Variables named TROUPE_* that no option has, each as a sentence for a warning. They are not errors: Kubernetes
/// injects such variables for a service that is called "troupe".
std::vector<std::string> unknown_variables(const environment& env);

/// Command-line values in order: an option's YAML path and the text given for it.
using overrides = std::vector<std::pair<std::string, std::string>>;

/// Reads, merges and validates. Without `yaml` only defaults, `env` and `flags` count.
result<settings> load(const std::optional<std::filesystem::path>& yaml, const environment& env, const overrides& flags);

/// As `load`, from YAML text; `place` names it in messages.
result<settings> load_text(std::string_view yaml_text, std::string_view place, const environment& env,
                           const overrides& flags);

}  // namespace troupe::config
