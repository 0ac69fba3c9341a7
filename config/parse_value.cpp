#include "config/parse_value.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>

namespace troupe::config {
namespace {

struct unit {
  std::string_view name;
  double factor;
};

constexpr std::array<unit, 4> duration_units{{{"ms", 1}, {"s", 1000}, {"min", 60'000}, {"h", 3'600'000}}};
constexpr std::array<unit, 14> size_units{{{"", 1},
                                           {"B", 1},
                                           {"K", 1e3},
                                           {"KB", 1e3},
                                           {"KiB", 1024},
                                           {"M", 1e6},
                                           {"MB", 1e6},
                                           {"MiB", 1048576},
                                           {"G", 1e9},
                                           {"GB", 1e9},
                                           {"GiB", 1073741824},
                                           {"T", 1e12},
                                           {"TB", 1e12},
                                           {"TiB", 1099511627776}}};

error invalid(std::string message) { return {error_kind::invalid, std::move(message), {}}; }

std::string quoted(std::string_view text) { return "'" + std::string(text.substr(0, 80)) + "'"; }

bool is_number_character(char c) { return (c >= '0' && c <= '9') || c == '.'; }

/// Splits "1.5GiB" and multiplies; fails where the number or the unit is none, or the product passes 2^63.
template <std::size_t N>
std::optional<std::uint64_t> scaled(std::string_view text, const std::array<unit, N>& units) {
  const auto end = std::find_if_not(text.begin(), text.end(), is_number_character);
  const std::string_view digits(text.data(), static_cast<std::size_t>(end - text.begin()));
  std::string_view name = text.substr(digits.size());
  if (name.starts_with(' ')) name.remove_prefix(1);
  const auto found = std::find_if(units.begin(), units.end(), [&](const unit& u) { return u.name == name; });
  if (digits.empty() || found == units.end()) return std::nullopt;

  double value = 0;
  const auto [stop, failure] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::fixed);
  if (failure != std::errc{} || stop != digits.data() + digits.size()) return std::nullopt;
  value *= found->factor;
  if (!(value < 9.2e18)) return std::nullopt;
  return static_cast<std::uint64_t>(std::llround(value));
}

}  // namespace

result<std::uint64_t> parse_integer(std::string_view text) {
  std::uint64_t value = 0;
  const auto [stop, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure == std::errc::result_out_of_range) return invalid(quoted(text) + " is too large");
  if (text.empty() || failure != std::errc{} || stop != text.data() + text.size())
    return invalid(quoted(text) + " is not a whole number");
  return value;
}

result<std::chrono::milliseconds> parse_duration(std::string_view text) {
  if (text == "0") return std::chrono::milliseconds{0};
  if (const auto value = scaled(text, duration_units)) return std::chrono::milliseconds{*value};
  return invalid(quoted(text) + " is not a duration: write a number and ms, s, min or h, such as 50ms or 5min");
}

result<std::uint64_t> parse_size(std::string_view text) {
  if (const auto value = scaled(text, size_units)) return *value;
  return invalid(quoted(text) + " is not a size: write bytes or a number and a unit, such as 4096, 16KiB or 4MiB");
}

result<bool> parse_boolean(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const std::string_view word : {"true", "on", "yes", "1", "enabled"})
    if (lower == word) return true;
  for (const std::string_view word : {"false", "off", "no", "0", "disabled"})
    if (lower == word) return false;
  return invalid(quoted(text) + " is neither true nor false");
}

std::string show_duration(std::chrono::milliseconds value) {
  const auto ms = value.count();
  if (ms == 0) return "0";
  if (ms % 3'600'000 == 0) return std::to_string(ms / 3'600'000) + "h";
  if (ms % 60'000 == 0) return std::to_string(ms / 60'000) + "min";
  if (ms % 1000 == 0) return std::to_string(ms / 1000) + "s";
  return std::to_string(ms) + "ms";
}

std::string show_size(std::uint64_t bytes) {
  if (bytes == 0) return "0";
  static constexpr std::array<std::string_view, 5> names{"", "KiB", "MiB", "GiB", "TiB"};
  std::size_t power = 0;
  while (power + 1 < names.size() && bytes % 1024 == 0) {
    bytes /= 1024;
    ++power;
  }
  return std::to_string(bytes) + std::string(names[power]);
}

}  // namespace troupe::config
