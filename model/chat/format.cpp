// Python's two ways to format: printf-style (Python Library Reference, "printf-style String Formatting") and the braces
// of str.format ("Format String Syntax"), for the types that templates have.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>

#include "model/chat/letters.hpp"
#include "model/chat/text_methods.hpp"

namespace troupe::model::jinja {
namespace {

constexpr std::int64_t max_precision = 100;

struct style {
  char fill = ' ';
  char align = '\0';  ///< '<', '>', '^', '=', or by type.
  char sign = '-';
  bool alternate = false;
  char group = '\0';
  std::int64_t width = 0;
  std::optional<std::int64_t> precision;
  char type = '\0';
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::optional<std::int64_t> read_number(std::string_view from, std::size_t& at) {
  if (at >= from.size() || !is_digit(from[at])) return std::nullopt;
  std::int64_t out = 0;
  for (; at < from.size() && is_digit(from[at]); ++at) {
    out = out * 10 + (from[at] - '0');
    if (out > 1'000'000) throw failure("a width in a format is too large");
  }
  return out;
}

std::string in_base(std::uint64_t number, unsigned base, bool upper) {
  const std::string_view symbols = upper ? "0123456789ABCDEF" : "0123456789abcdef";
  std::string out;
  do {
    out += symbols[number % base];
    number /= base;
  } while (number != 0);
  std::reverse(out.begin(), out.end());
  return out;
}

std::string real_digits(double magnitude, char type, std::int64_t precision) {
  if (precision > max_precision) throw failure("a precision in a format is too large");
  if (!std::isfinite(magnitude)) {
    const bool high = type >= 'A' && type <= 'Z';
    return std::isnan(magnitude) ? (high ? "NAN" : "nan") : (high ? "INF" : "inf");
  }
  const std::array<char, 5> pattern{'%', '.', '*', type, '\0'};
  std::array<char, 512> buffer{};
  const int count = std::snprintf(buffer.data(), buffer.size(), pattern.data(), static_cast<int>(precision), magnitude);
  return {buffer.data(), static_cast<std::size_t>(std::clamp(count, 0, 511))};
}

void group_thousands(std::string& digits, char mark) {
  const std::size_t whole = std::min(digits.find_first_not_of("0123456789"), digits.size());
  for (std::size_t at = whole; at > 3; at -= 3) digits.insert(at - 3, 1, mark);
}

/// Sign, prefix and digits, filled to the width.
text number_text(const value& v, const style& s) {
  const auto whole = v.whole();
  const double real = *v.number();
  const bool real_type = std::string_view("fFeEgG%").find(s.type) != std::string_view::npos;
  const bool negative = whole && !real_type ? *whole < 0 : std::signbit(real) && !std::isnan(real);
  std::string prefix = negative ? "-" : s.sign == '-' ? "" : std::string(1, s.sign);
  std::string digits;
  if (real_type) {
    const bool percent = s.type == '%';
    digits = real_digits(std::abs(real) * (percent ? 100 : 1), percent ? 'f' : s.type, s.precision.value_or(6));
    if (percent) digits += '%';
  } else if (!whole) {
    digits = s.precision ? real_digits(std::abs(real), 'g', *s.precision) : float_text(std::abs(real));
  } else {
    const auto* exact = v.as<std::int64_t>();
    const std::int64_t number = exact != nullptr ? *exact : v.truthy() ? 1 : 0;
    const auto bits = static_cast<std::uint64_t>(number);
    const std::uint64_t magnitude = number < 0 ? std::uint64_t{0} - bits : bits;
    const bool hex = s.type == 'x' || s.type == 'X';
    digits = in_base(magnitude, hex ? 16 : s.type == 'o' ? 8 : s.type == 'b' ? 2 : 10, s.type == 'X');
    if (s.alternate && (hex || s.type == 'o' || s.type == 'b')) prefix += std::string("0") + s.type;
  }
  if (s.group != '\0') group_thousands(digits, s.group);
  if (s.align == '=') {
    const auto wide = s.width - static_cast<std::int64_t>(prefix.size());
    return text(prefix + padded(text(digits), wide, '>', s.fill).bytes());
  }
  return padded(text(prefix + digits), s.width, s.align == '\0' ? '>' : s.align, s.fill);
}

text cut_to(const text& t, const std::optional<std::int64_t>& precision) {
  return precision ? t.substr(0, character_offset(t.bytes(), static_cast<std::size_t>(*precision))) : t;
}

// printf-style

text percent_item(const value& item, style s) {
  switch (s.type) {
    case 's':
    case 'r':
    case 'a':
      return padded(cut_to(s.type == 's' ? to_text(item) : repr(item), s.precision), s.width,
                    s.align == '<' ? '<' : '>');
    case 'c': {
      const auto code = item.whole();
      if (code && *code >= 0 && *code < 0x110000)
        return padded(text(encoded(static_cast<char32_t>(*code))), s.width, '>');
      if (item.is<text>() && length_of(item) == 1) return padded(*item.as<text>(), s.width, s.align == '<' ? '<' : '>');
      throw failure("%c requires int or char");
    }
    case 'd':
    case 'i':
    case 'u': {
      const auto number = item.number();
      if (!number) throw failure("%d format: a real number is required, not " + item.type_name());
      if (!item.whole() && !(std::abs(*number) < 9e18)) throw failure("%d format: the number is too large");
      s.type = 'd';
      return number_text(item.whole() ? item : value::integer(static_cast<std::int64_t>(*number)), s);
    }
    case 'x':
    case 'X':
    case 'o':
      if (!item.whole()) throw failure(std::string("%") + s.type + " format: an integer is required");
      return number_text(item, s);
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
      if (!item.number()) throw failure("must be real number, not " + item.type_name());
      return number_text(item, s);
    default:
      throw failure(std::string("unsupported format character '") + s.type + "'");
  }
}

void read_flags(std::string_view pattern, std::size_t& at, style& s) {
  for (; at < pattern.size() && std::string_view("-+ #0").find(pattern[at]) != std::string_view::npos; ++at) {
    const char flag = pattern[at];
    if (flag == '-') s.align = '<';
    if (flag == '+' || (flag == ' ' && s.sign == '-')) s.sign = flag;
    if (flag == '#') s.alternate = true;
    if (flag == '0' && s.align != '<') {
      s.align = '=';
      s.fill = '0';
    }
  }
  if (s.align == '<') s.fill = ' ';
}

// Braces

style read_style(std::string_view spec) {
  style s;
  std::size_t at = 0;
  const auto aligns = [&](std::size_t i) {
    return i < spec.size() && std::string_view("<>^=").find(spec[i]) != std::string_view::npos;
  };
  if (aligns(1)) {
    s.fill = spec[0];
    s.align = spec[1];
    at = 2;
  } else if (aligns(0)) {
    s.align = spec[0];
    at = 1;
  }
  if (at < spec.size() && (spec[at] == '+' || spec[at] == '-' || spec[at] == ' ')) s.sign = spec[at++];
  if (at < spec.size() && spec[at] == '#') s.alternate = (++at, true);
  if (at < spec.size() && spec[at] == '0' && s.align == '\0') {
    s.align = '=';
    s.fill = '0';
    ++at;
  }
  s.width = read_number(spec, at).value_or(0);
  if (at < spec.size() && (spec[at] == ',' || spec[at] == '_')) s.group = spec[at++];
  if (at < spec.size() && spec[at] == '.') {
    s.precision = read_number(spec, ++at);
    if (!s.precision) throw failure("Format specifier missing precision");
  }
  if (at < spec.size()) s.type = spec[at++];
  if (at != spec.size()) throw failure("Invalid format specifier '" + std::string(spec) + "'");
  return s;
}

text braces_item(const value& v, const style& s) {
  if (v.number() && !(v.is<bool>() && s.type == '\0')) {
    const bool known = s.type == '\0' || std::string_view("fFeEgG%").find(s.type) != std::string_view::npos ||
                       (v.whole() && std::string_view("dxXob").find(s.type) != std::string_view::npos);
    if (!known)
      throw failure(std::string("Unknown format code '") + s.type + "' for object of type '" + v.type_name() + "'");
    return number_text(v, s);
  }
  const bool plain = v.is<text>() || v.is<bool>();
  if ((s.type != '\0' && s.type != 's') || s.align == '=')
    throw failure(std::string("Unknown format code '") + s.type + "' for object of type '" + v.type_name() + "'");
  if (!plain && (s.width != 0 || s.precision))
    throw failure("unsupported format string passed to " + v.type_name() + ".__format__");
  return padded(cut_to(to_text(v), s.precision), s.width, s.align == '\0' ? '<' : s.align, s.fill);
}

value braces_argument(const std::string& key, const arguments& with, std::size_t& next) {
  const std::size_t bracket = std::min(key.find('['), key.size());
  const std::string name = key.substr(0, bracket);
  std::size_t at = 0;
  const auto number = read_number(name, at);
  const bool numbered = number && at == name.size();
  constexpr std::size_t manual = SIZE_MAX;  // fields are numbered by hand
  if ((name.empty() && next == manual) || (numbered && next != 0 && next != manual))
    throw failure("cannot switch between automatic and manual field numbering");
  if (numbered) next = manual;
  value out = name.empty() ? with.get(next++, "")
              : numbered   ? with.get(static_cast<std::size_t>(*number), "")
                           : with.get(with.positional.size(), name);
  if (out.is<undefined>()) throw failure("format has no argument '" + name + "'");
  if (bracket == key.size()) return out;
  if (key.back() != ']') throw failure("Only '.' or '[' may follow ']' in format field specifier");
  const std::string inner = key.substr(bracket + 1, key.size() - bracket - 2);
  const auto* d = out.as<dict_value>();
  const auto* l = out.as<list_value>();
  at = 0;
  const auto index = read_number(inner, at);
  if (l != nullptr && index && static_cast<std::size_t>(*index) < l->items->size())
    return (*l->items)[static_cast<std::size_t>(*index)];
  const value* found = d == nullptr ? nullptr : d->members->find(inner);
  if (found == nullptr) throw failure("format finds no '" + inner + "'");
  return *found;
}

text replacement(const std::string& field, const arguments& with, std::size_t& next) {
  const auto colon = std::min(field.find(':'), field.size());
  std::string key = field.substr(0, colon);
  char conversion = '\0';
  if (key.size() >= 2 && key[key.size() - 2] == '!') {
    conversion = key.back();
    key.resize(key.size() - 2);
  }
  value found = braces_argument(key, with, next);
  if (conversion == 'r') found = repr(found);
  if (conversion == 's') found = to_text(found);
  return braces_item(found, read_style(colon == field.size() ? "" : std::string_view(field).substr(colon + 1)));
}

}  // namespace

text format_percent(const text& pattern, const value& with) {
  const auto* l = with.as<list_value>();
  const auto* named = with.as<dict_value>();
  const sequence items = l != nullptr && l->tuple ? *l->items : sequence{with};
  const std::string& bytes = pattern.bytes();
  text out;
  std::size_t next = 0;
  const auto take = [&]() -> const value& {
    if (next >= items.size()) throw failure("not enough arguments for format string");
    return items[next++];
  };
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t mark = std::min(bytes.find('%', at), bytes.size());
    out += pattern.substr(at, mark - at);
    if (mark == bytes.size()) break;
    at = mark + 1;
    const value* item = nullptr;
    if (at < bytes.size() && bytes[at] == '(') {
      const auto end = bytes.find(')', at);
      if (named == nullptr) throw failure("format requires a mapping");
      if (end == std::string::npos) throw failure("incomplete format key");
      item = named->members->find(bytes.substr(at + 1, end - at - 1));
      if (item == nullptr) throw failure("format has no argument '" + bytes.substr(at + 1, end - at - 1) + "'");
      at = end + 1;
    }
    style s;
    read_flags(bytes, at, s);
    s.width = read_number(bytes, at).value_or(0);
    if (at < bytes.size() && bytes[at] == '.') s.precision = read_number(bytes, ++at).value_or(0);
    if (at >= bytes.size()) throw failure("incomplete format");
    s.type = bytes[at++];
    if (s.type == '%')
      out += text("%");
    else
      out += percent_item(item != nullptr ? *item : take(), s);
  }
  const bool container = named != nullptr || (l != nullptr && !l->tuple);
  if (next < items.size() && !container) throw failure("not all arguments converted during string formatting");
  return out;
}

text format_braces(const text& pattern, const arguments& with) {
  text out;
  const std::string& bytes = pattern.bytes();
  std::size_t next = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t mark = std::min(bytes.find_first_of("{}", at), bytes.size());
    out += pattern.substr(at, mark - at);
    if (mark == bytes.size()) break;
    if (mark + 1 < bytes.size() && bytes[mark + 1] == bytes[mark]) {
      out += pattern.substr(mark, 1);
      at = mark + 2;
      continue;
    }
    const auto end = bytes.find('}', mark);
    if (bytes[mark] == '}' || end == std::string::npos)
      throw failure(std::string("Single '") + bytes[mark] + "' encountered in format string");
    out += replacement(bytes.substr(mark + 1, end - mark - 1), with, next);
    at = end + 1;
  }
  return out;
}

}  // namespace troupe::model::jinja
