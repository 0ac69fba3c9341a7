#include "model/tokenizer/unicode.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <bitset>
#include <vector>

#include "model/tokenizer/unicode_differences.hpp"

namespace troupe::model::unicode {
namespace {

utf8proc_category_t category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

template <class Range>
const Range* find_range(std::span<const Range> ranges, char32_t c) {
  const auto after = std::upper_bound(ranges.begin(), ranges.end(), c,
                                      [](char32_t value, const Range& range) { return value < range.first; });
  return after != ranges.begin() && c <= std::prev(after)->last ? &*std::prev(after) : nullptr;
}

/// The blocks of 256 characters in which some were added, so that most texts are done at a glance.
const std::bitset<0x1100> added_blocks = [] {
  std::bitset<0x1100> blocks;
  for (const auto& range : added())
    for (char32_t block = range.first >> 8; block <= range.last >> 8; ++block) blocks.set(block);
  return blocks;
}();

const added_range* find_added(char32_t c) { return added_blocks[c >> 8] ? find_range(added(), c) : nullptr; }

struct mark {
  utf8proc_int32_t value;
  utf8proc_propval_t combining_class;
};

/// The combining class as the reference's tables have it, which lack some marks.
utf8proc_propval_t combining_class(utf8proc_int32_t point) {
  const auto c = static_cast<char32_t>(point);
  if (c < 0x300) return 0;
  const auto known = utf8proc_get_property(point)->combining_class;
  return known != 0 && (find_added(c) || find_range(no_combining_class(), c)) ? utf8proc_propval_t{0} : known;
}

/// Canonical ordering (UAX #15): every run of characters with a combining class is sorted by it, stably.
void sort_marks(std::vector<utf8proc_int32_t>& text) {
  std::vector<mark> run;
  const auto flush = [&](std::size_t end) {
    if (run.size() > 1) {
      std::stable_sort(run.begin(), run.end(),
                       [](const mark& a, const mark& b) { return a.combining_class < b.combining_class; });
      for (std::size_t i = 0; i < run.size(); ++i) text[end - run.size() + i] = run[i].value;
    }
    run.clear();
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto order = combining_class(text[i]);
    if (order == 0)
      flush(i);
    else
      run.push_back({text[i], order});
  }
  flush(text.size());
}

/// Canonical composition. A mark that the reference does not know as one stands between its neighbours like a letter.
void compose(std::vector<utf8proc_int32_t>& text) {
  const auto is_barrier = [](utf8proc_int32_t point) {
    return point >= 0x300 && combining_class(point) != utf8proc_get_property(point)->combining_class;
  };
  std::size_t out = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    if (is_barrier(text[begin])) {
      text[out++] = text[begin++];
      continue;
    }
    auto end = begin;
    while (end < text.size() && !is_barrier(text[end])) ++end;
    const auto length = utf8proc_normalize_utf32(text.data() + begin, static_cast<utf8proc_ssize_t>(end - begin),
                                                 static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
    for (utf8proc_ssize_t i = 0; i < length; ++i) text[out++] = text[begin + static_cast<std::size_t>(i)];
    begin = end;
  }
  text.resize(out);
}

}  // namespace

void append(std::string& out, char32_t c) {
  const auto put = [&](char32_t byte) { out += static_cast<char>(byte); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6);
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3F));
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  }
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

bool is_whitespace(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_numeric(char32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  const auto kind = category(c);
  return kind == UTF8PROC_CATEGORY_ND || kind == UTF8PROC_CATEGORY_NL || kind == UTF8PROC_CATEGORY_NO ||
         find_range(added_numeric(), c);
}

bool is_punctuation(char32_t c) {
  if (c < 0x80) return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126);
  if (find_added(c)) return find_range(added_punctuation(), c);
  const auto kind = category(c);
  if (kind >= UTF8PROC_CATEGORY_PC && kind <= UTF8PROC_CATEGORY_PO) return !find_range(not_punctuation(), c);
  return find_range(added_punctuation(), c);
}

bool is_word(char32_t c) {
  if (c < 0x80) return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
  const auto kind = category(c);
  if (kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_NL) return true;  // letters, marks, Nd, Nl
  if (kind == UTF8PROC_CATEGORY_PC) return true;
  const bool circled_letter = (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
                              (c >= 0x1F150 && c <= 0x1F169) ||
                              (c >= 0x1F170 && c <= 0x1F189);  // symbols, but Other_Alphabetic
  if (circled_letter || c == 0x200C || c == 0x200D) return true;
  const auto* range = find_added(c);
  return range && (range->category[0] == 'L' || range->category[0] == 'M' || range->category[1] == 'd');
}

bool has_added_character(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    if (static_cast<unsigned char>(text[i]) < 0xE0) {  // everything below U+0800 is old
      ++i;
      continue;
    }
    const auto c = at(text, i);
    if (find_added(c.value)) return true;
    i += c.length;
  }
  return false;
}

std::string lowercase(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  const auto other = other_lower_cases();
  for (std::size_t i = 0; i < text.size();) {
    const auto c = at(text, i);
    i += c.length;
    if (c.value < 0x80) {
      out += static_cast<char>(c.value >= 'A' && c.value <= 'Z' ? c.value + 32 : c.value);
      continue;
    }
    if (c.value == 0x130) {
      out += "i\xCC\x87";
      continue;
    }
    const auto found = std::lower_bound(other.begin(), other.end(), c.value,
                                        [](const lower_case& entry, char32_t value) { return entry.upper < value; });
    if (found != other.end() && found->upper == c.value)
      append(out, found->lower);
    else
      append(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c.value))));
  }
  return out;
}

std::string normalize(std::string_view text, form to) {
  if (is_ascii(text)) return std::string(text);
  const bool compatible = to == form::nfkc || to == form::nfkd;
  const auto options =
      static_cast<utf8proc_option_t>(compatible ? UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT : UTF8PROC_DECOMPOSE);

  std::vector<utf8proc_int32_t> points;
  points.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const auto c = at(text, i);
    i += c.length;
    const auto value = static_cast<utf8proc_int32_t>(c.value);
    const bool kept = c.value < 0x80 || find_added(c.value) || find_range(no_canonical_decomposition(), c.value) ||
                      (compatible && find_range(no_compatible_decomposition(), c.value));
    utf8proc_int32_t parts[32];  // the longest full decomposition has 18 characters
    const auto count = kept ? 0 : utf8proc_decompose_char(value, parts, 32, options, nullptr);
    if (count <= 0 || count > 32)
      points.push_back(value);
    else
      points.insert(points.end(), parts, parts + count);
  }
  sort_marks(points);

  if (to == form::nfc || to == form::nfkc) compose(points);
  std::string out;
  out.reserve(text.size());
  for (const auto point : points) append(out, static_cast<char32_t>(point));
  return out;
}

}  // namespace troupe::model::unicode
