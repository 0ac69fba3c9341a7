#pragma once

#include <filesystem>
#include <ostream>

#include "base/result.hpp"

namespace troupe::app {

/// Opens the model at `path` with all its checks and prints what it is: architecture, sizes, experts, weights by type,
/// tokenizer and template.
result<void> inspect(const std::filesystem::path& path, std::ostream& out);

}  // namespace troupe::app
