#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

/// Texts as people write them in a configuration ("50ms", "4MiB", "on") to values and back. Errors carry no place.
namespace troupe::config {

/// A decimal integer, digits only.
result<std::uint64_t> parse_integer(std::string_view text);

/// "50ms", "1.5s", "5min", "2h"; a bare number is refused unless it is 0, because its unit would be a guess.
result<std::chrono::milliseconds> parse_duration(std::string_view text);

/// Bytes: "4096", "16KiB", "4MiB", "1.5GiB"; K, M, G and KB, MB, GB are decimal, as on disks.
result<std::uint64_t> parse_size(std::string_view text);

/// true, on, yes, 1, enabled and their opposites, in any case.
result<bool> parse_boolean(std::string_view text);

std::string show_duration(std::chrono::milliseconds value);
std::string show_size(std::uint64_t bytes);

}  // namespace troupe::config
