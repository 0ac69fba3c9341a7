#include "model/chat/letters.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <array>

namespace troupe::model::jinja {
namespace {

enum class letter_case { lower, upper, title };

utf8proc_category_t category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

char32_t simple(char32_t c, letter_case to) {
  const auto point = static_cast<utf8proc_int32_t>(c);
  return static_cast<char32_t>(to == letter_case::lower   ? utf8proc_tolower(point)
                               : to == letter_case::upper ? utf8proc_toupper(point)
                                                          : utf8proc_totitle(point));
}

std::u32string full_fold(char32_t c) {
  std::array<utf8proc_int32_t, 8> points{};
  int boundary = 0;
  const auto count =
      utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), points.data(),
                              static_cast<utf8proc_ssize_t>(points.size()), UTF8PROC_CASEFOLD, &boundary);
  std::u32string out;
  for (utf8proc_ssize_t i = 0; i < count && i < static_cast<utf8proc_ssize_t>(points.size()); ++i)
    out += static_cast<char32_t>(points[static_cast<std::size_t>(i)]);
  return out;
}

/// SpecialCasing.txt without a table: a lower-case letter that folds to several is written in capitals as those are.
std::u32string mapped(char32_t c, letter_case to) {
  if (to == letter_case::lower) return c == 0x130 ? std::u32string{U'i', 0x307} : std::u32string{simple(c, to)};
  const auto kind = category(c);
  if (c < 0x80 || kind == UTF8PROC_CATEGORY_LU) return {simple(c, to)};
  std::u32string parts = full_fold(c);
  if (parts.size() < 2) return {simple(c, to)};
  if (to == letter_case::upper) {
    for (char32_t& part : parts) part = simple(part, letter_case::upper);
    return parts;
  }
  if (kind == UTF8PROC_CATEGORY_LT || simple(c, to) != c) return {simple(c, to)};
  for (char32_t& part : parts)
    if (const char32_t changed = simple(part, letter_case::title); changed != part) {
      part = changed;
      break;
    }
  if (parts.back() == 0x3B9) parts.back() = 0x345;  // iota stays below the letter
  return parts;
}

bool is_cased(char32_t c) {
  const auto kind = category(c);
  return kind == UTF8PROC_CATEGORY_LU || kind == UTF8PROC_CATEGORY_LL || kind == UTF8PROC_CATEGORY_LT;
}

bool is_case_ignorable(char32_t c) {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return std::u32string_view(U"'.:\u00B7\u0387\u055F\u05F4\u2018\u2019\u2024\u2027").find(c) !=
             std::u32string_view::npos;
  }
}

/// Final_Sigma of The Unicode Standard, table 3-17.
bool ends_word(std::u32string_view all, std::size_t at) {
  std::size_t before = at;
  while (before > 0 && is_case_ignorable(all[before - 1])) --before;
  if (before == 0 || !is_cased(all[before - 1])) return false;
  std::size_t after = at + 1;
  while (after < all.size() && is_case_ignorable(all[after])) ++after;
  return after == all.size() || !is_cased(all[after]);
}

std::u32string characters(const std::string& bytes) {
  std::u32string out;
  for (std::size_t at = 0; at < bytes.size(); at += character_length(bytes[at])) out += character_at(bytes, at);
  return out;
}

/// Every character in the case that `choose(index, character)` says.
template <class Choose>
text with_case(const text& t, Choose choose) {
  const std::u32string all = characters(t.bytes());
  text out;
  std::size_t at = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const letter_case to = choose(i, all[i]);
    std::string bytes;
    if (all[i] == 0x3A3 && to == letter_case::lower && ends_word(all, i))
      bytes = encoded(0x3C2);
    else
      for (const char32_t c : mapped(all[i], to)) bytes += encoded(c);
    out.append(bytes, t.from_user(at));
    at += character_length(t.bytes()[at]);
  }
  return out;
}

/// Numeric_Type=Digit: digits outside any decimal system, such as superscripts.
bool is_other_digit(char32_t c) {
  static constexpr std::array<std::pair<char32_t, char32_t>, 20> ranges{
      {{0xB2, 0xB3},     {0xB9, 0xB9},       {0x1369, 0x1371},   {0x19DA, 0x19DA},   {0x2070, 0x2070},
       {0x2074, 0x2079}, {0x2080, 0x2089},   {0x2460, 0x2468},   {0x2474, 0x247C},   {0x2488, 0x2490},
       {0x24EA, 0x24EA}, {0x24F5, 0x24FD},   {0x24FF, 0x24FF},   {0x2776, 0x277E},   {0x2780, 0x2788},
       {0x278A, 0x2792}, {0x10A40, 0x10A43}, {0x10E60, 0x10E68}, {0x11052, 0x1105A}, {0x1F100, 0x1F10A}}};
  return std::any_of(ranges.begin(), ranges.end(), [c](const auto& r) { return c >= r.first && c <= r.second; });
}

bool is_alpha(char32_t c) {
  const auto kind = category(c);
  return is_cased(c) || kind == UTF8PROC_CATEGORY_LM || kind == UTF8PROC_CATEGORY_LO;
}

bool is_numeric(char32_t c) {
  const auto kind = category(c);
  return kind == UTF8PROC_CATEGORY_ND || kind == UTF8PROC_CATEGORY_NL || kind == UTF8PROC_CATEGORY_NO ||
         std::u32string_view(U"\u3007一二三四五六七八九十百千万億兆零壹貳參肆伍陸柒捌玖拾佰仟").find(c) !=
             std::u32string_view::npos;
}

bool of_class(char32_t c, std::string_view method) {
  const bool decimal = category(c) == UTF8PROC_CATEGORY_ND;
  if (method == "isdecimal") return decimal;
  if (method == "isdigit") return decimal || is_other_digit(c);
  if (method == "isnumeric") return is_numeric(c);
  if (method == "isalpha") return is_alpha(c);
  if (method == "isalnum") return is_alpha(c) || is_numeric(c);
  if (method == "isspace") return is_space(c);
  return c < 0x80;  // isascii
}

}  // namespace

std::size_t character_length(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

char32_t character_at(std::string_view bytes, std::size_t at) {
  const std::size_t length = std::min(character_length(bytes[at]), bytes.size() - at);
  const auto byte = [&](std::size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(bytes[at + i])); };
  if (length == 1) return byte(0);
  char32_t out = byte(0) & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) out = out << 6U | (byte(i) & 0x3F);
  return out;
}

std::string encoded(char32_t c) {
  std::array<utf8proc_uint8_t, 4> bytes{};
  const auto count = utf8proc_encode_char(static_cast<utf8proc_int32_t>(c), bytes.data());
  return {bytes.begin(), bytes.begin() + count};
}

text upper(const text& t) {
  return with_case(t, [](std::size_t, char32_t) { return letter_case::upper; });
}
text lower(const text& t) {
  return with_case(t, [](std::size_t, char32_t) { return letter_case::lower; });
}
text capitalize(const text& t) {
  return with_case(t, [](std::size_t i, char32_t) { return i == 0 ? letter_case::title : letter_case::lower; });
}
text title(const text& t) {
  return with_case(t, [inside = false](std::size_t, char32_t c) mutable {
    const bool was = std::exchange(inside, is_cased(c));
    return was ? letter_case::lower : letter_case::title;
  });
}
text title_words(const text& t) {
  return with_case(t, [inside = false](std::size_t, char32_t c) mutable {
    const bool gap = is_space(c) || std::u32string_view(U"-({[<").find(c) != std::u32string_view::npos;
    const bool was = std::exchange(inside, !gap);
    return was ? letter_case::lower : letter_case::upper;
  });
}
text swap_case(const text& t) {
  return with_case(t, [](std::size_t, char32_t c) {
    return category(c) == UTF8PROC_CATEGORY_LU ? letter_case::lower : letter_case::upper;
  });
}

text fold(const text& t) {
  text out;
  for (std::size_t at = 0; at < t.size(); at += character_length(t.bytes()[at])) {
    std::string bytes;
    for (const char32_t c : full_fold(character_at(t.bytes(), at))) bytes += encoded(c);
    out.append(bytes, t.from_user(at));
  }
  return out;
}

bool is_space(char32_t c) {
  return (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0x2028 || c == 0x2029 ||
         (c >= 0xA0 && category(c) == UTF8PROC_CATEGORY_ZS);
}

bool is_line_end(char32_t c) {
  return (c >= 10 && c <= 13) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

bool all_of_class(const text& t, std::string_view method) {
  const std::u32string all = characters(t.bytes());
  return (method == "isascii" || !all.empty()) &&
         std::all_of(all.begin(), all.end(), [&](char32_t c) { return of_class(c, method); });
}

bool has_case(const text& t, std::string_view method) {
  bool any = false;
  bool inside = false;
  for (const char32_t c : characters(t.bytes())) {
    const auto kind = category(c);
    const bool high = kind == UTF8PROC_CATEGORY_LU || kind == UTF8PROC_CATEGORY_LT;
    if (method == "istitle") {
      if (is_cased(c) && high == inside) return false;
      inside = is_cased(c);
    } else if (is_cased(c) &&
               (kind == UTF8PROC_CATEGORY_LT || (kind == UTF8PROC_CATEGORY_LU) != (method == "isupper"))) {
      return false;
    }
    any = any || is_cased(c);
  }
  return any;
}

}  // namespace troupe::model::jinja
