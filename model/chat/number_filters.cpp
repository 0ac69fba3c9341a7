#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>

#include "model/chat/filters.hpp"
#include "model/chat/text_methods.hpp"

namespace troupe::model::jinja {
namespace {

/// Python's round(): the decimal digits of the number itself decide, halves go to even.
double round_half_even(double number, std::int64_t digits) {
  if (!std::isfinite(number) || digits > 22) return number;
  if (digits < 0) {
    const double scale = std::pow(10.0, static_cast<double>(-std::max<std::int64_t>(digits, -400)));
    return std::isinf(scale) ? 0.0 : std::nearbyint(number / scale) * scale;
  }
  char buffer[400];
  std::snprintf(buffer, sizeof buffer, "%.*f", static_cast<int>(digits), number);
  return std::strtod(buffer, nullptr);
}

}  // namespace

value absolute(const value& subject) {
  if (const auto whole = subject.whole()) {
    if (*whole == INT64_MIN) throw failure("an integer overflows");
    return value::integer(std::abs(*whole));
  }
  if (const auto number = subject.number()) return value(std::abs(*number));
  throw failure("bad operand type for abs(): '" + subject.type_name() + "'");
}

value rounded(const value& subject, const arguments& a) {
  const auto number = subject.number();
  if (!number) throw failure("round needs a number, not " + subject.type_name());
  const std::int64_t digits = a.get(0, "precision").whole().value_or(0);
  const value method = a.get(1, "method");
  const std::string how = method.is<text>() ? method.as<text>()->bytes() : "common";
  if (how == "common")
    return subject.whole() && digits >= 0 ? value::integer(*subject.whole()) : value(round_half_even(*number, digits));
  if (how != "ceil" && how != "floor") throw failure("method must be common, ceil or floor");
  const double scale = std::pow(10.0, static_cast<double>(digits));
  return (how == "ceil" ? std::ceil(*number * scale) : std::floor(*number * scale)) / scale;
}

value to_integer(const value& subject, const arguments& a) {
  const value fallback = a.has(0, "default") ? a.get(0, "default") : value::integer(0);
  if (const auto whole = subject.whole()) return value::integer(*whole);
  if (const auto number = subject.number())
    return std::abs(*number) < 9e18 ? value::integer(static_cast<std::int64_t>(*number)) : fallback;
  const auto* t = subject.as<text>();
  if (t == nullptr) return fallback;
  std::string bytes = trimmed(*t, {}, true, true).bytes();
  char* end = nullptr;
  if (const auto base = a.get(1, "base").whole(); base && *base != 10) {
    if ((*base != 0 && *base < 2) || *base > 36) return fallback;
    errno = 0;
    const long long number = std::strtoll(bytes.c_str(), &end, static_cast<int>(*base));
    return bytes.empty() || *end != '\0' || errno != 0 ? fallback : value::integer(number);
  }
  const double real = std::strtod(bytes.c_str(), &end);
  if (bytes.empty() || *end != '\0' || !(std::abs(real) < 9e18)) return fallback;
  return value::integer(bytes.find_first_of(".eE") == std::string::npos ? std::strtoll(bytes.c_str(), nullptr, 10)
                                                                        : static_cast<std::int64_t>(real));
}

value to_float(const value& subject, const arguments& a) {
  const value fallback = a.has(0, "default") ? a.get(0, "default") : value(0.0);
  if (const auto number = subject.number()) return *number;
  const auto* t = subject.as<text>();
  if (t == nullptr) return fallback;
  const std::string bytes = trimmed(*t, {}, true, true).bytes();
  char* end = nullptr;
  const double real = std::strtod(bytes.c_str(), &end);
  return bytes.empty() || *end != '\0' ? fallback : value(real);
}

text file_size(const value& subject, const arguments& a) {
  const value number = to_float(subject, {});
  const bool binary = a.get(0, "binary").truthy();
  const double base = binary ? 1024 : 1000;
  const double bytes = number.number().value_or(0);
  if (bytes == 1) return text("1 Byte");
  if (bytes < base) return text(std::to_string(static_cast<std::int64_t>(bytes)) + " Bytes");
  constexpr std::string_view prefixes = "kMGTPEZY";
  double unit = base;
  std::size_t at = 0;
  while (at + 1 < prefixes.size() && bytes >= unit * base) {
    unit *= base;
    ++at;
  }
  arguments one;
  one.positional = {value(bytes / unit)};
  const char prefix = binary && at == 0 ? 'K' : prefixes[at];
  return text(format_braces(text("{:.1f} "), one).bytes() + prefix + (binary ? "iB" : "B"));
}

}  // namespace troupe::model::jinja
