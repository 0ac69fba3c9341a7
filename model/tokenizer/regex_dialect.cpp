#include <array>
#include <optional>
#include <vector>

#include "model/tokenizer/regex.hpp"
#include "model/tokenizer/regex_dialect.hpp"
#include "model/tokenizer/unicode.hpp"
#include "model/tokenizer/unicode_differences.hpp"

namespace troupe::model {
namespace {

constexpr std::string_view space_ranges =
    R"(\x09-\x0D\x20\x85\xA0\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";
constexpr std::string_view not_space_ranges =
    R"(\x00-\x08\x0E-\x1F\x21-\x84\x86-\x9F\xA1-\x{167F}\x{1681}-\x{1FFF}\x{200B}-\x{2027}\x{202A}-\x{202E})"
    R"(\x{2030}-\x{205E}\x{2060}-\x{2FFF}\x{3001}-\x{10FFFF})";
// What Oniguruma counts as part of a word besides: Latin-1 numbers and the circled letters (Other_Alphabetic).
constexpr std::string_view other_word_characters =
    R"(\xB2\xB3\xB9\xBC-\xBE\x{24B6}-\x{24E9}\x{1F130}-\x{1F149}\x{1F150}-\x{1F169}\x{1F170}-\x{1F189})";

void append_range(std::string& out, char32_t first, char32_t last) {
  std::array<char, 32> text{};
  const int length = std::snprintf(text.data(), text.size(), "\\x{%X}-\\x{%X}", static_cast<unsigned>(first),
                                   static_cast<unsigned>(last));
  out.append(text.data(), static_cast<std::size_t>(length));
}

/// What the property got after Unicode 14, as ranges inside a class.
std::string added_ranges(std::string_view property) {
  std::string out;
  if (property == "Han") {
    for (const auto& range : unicode::added_han()) append_range(out, range.first, range.last);
    return out;
  }
  if (property.size() > 2) return out;
  for (const auto& range : unicode::added())
    if (std::string_view(range.category).substr(0, property.size()) == property)
      append_range(out, range.first, range.last);
  return out;
}

std::string_view short_name(std::string_view property) {
  constexpr std::pair<std::string_view, std::string_view> names[] = {{"Letter", "L"},
                                                                     {"Mark", "M"},
                                                                     {"Number", "N"},
                                                                     {"Punctuation", "P"},
                                                                     {"Symbol", "S"},
                                                                     {"Punct", "P"},
                                                                     {"Separator", "Z"},
                                                                     {"Uppercase_Letter", "Lu"},
                                                                     {"Lowercase_Letter", "Ll"},
                                                                     {"Titlecase_Letter", "Lt"},
                                                                     {"Modifier_Letter", "Lm"},
                                                                     {"Other_Letter", "Lo"},
                                                                     {"Decimal_Number", "Nd"}};
  for (const auto& [longer, shorter] : names)
    if (property == longer) return shorter;
  return property;
}

class translator {
 public:
  translator(std::string_view pattern, regex_tables tables) : in_(pattern), newest_(tables == regex_tables::newest) {}

  /// Nothing if the pattern uses what PCRE2 cannot say; `reason()` then says what.
  std::optional<std::string> run() {
    while (at_ < in_.size() && !reason_) {
      const char c = in_[at_];
      if (!in_class_ && !is_quantifier(c)) atom_ = out_.size();
      if (c == '\\')
        escape();
      else if (in_class_)
        class_character(c);
      else
        plain_character(c);
    }
    if (reason_) return std::nullopt;
    return std::move(out_);
  }
  const std::string& reason() const { return *reason_; }

 private:
  char peek(std::size_t ahead) const { return at_ + ahead < in_.size() ? in_[at_ + ahead] : '\0'; }
  void copy(std::size_t bytes) {
    out_ += in_.substr(at_, bytes);
    at_ += bytes;
  }

  /// Whether `c` belongs to how often the atom before it is repeated.
  bool is_quantifier(char c) {
    if (interval_ && c != '}') return true;
    if (c == '{') return interval_ = peek(1) >= '0' && peek(1) <= '9';
    return c == '*' || c == '+' || c == '?' || (interval_ && c == '}');
  }

  void plain_character(char c) {
    if (c == '[') {
      in_class_ = true;
      copy(1);
      if (peek(0) == '^') copy(1);
      if (peek(0) == ']') copy(1);
    } else if (c == '(' && peek(1) == '?') {
      group_flags();
    } else if (c == '}' && interval_) {
      interval_ = false;
      copy(1);
      if (peek(0) != '+') return;
      out_.insert(atom_, "(?:");  // "{n,m}+" repeats here; in PCRE2 it would be possessive
      out_ += ')';
      copy(1);
    } else {
      if (c == '(') groups_.push_back(out_.size());
      copy(1);
      if (c == ')' && !groups_.empty()) {
        atom_ = groups_.back();
        groups_.pop_back();
      }
    }
  }

  /// Inline flags: (?m) lets the dot match a newline, which PCRE2 calls (?s).
  void group_flags() {
    groups_.push_back(out_.size());
    copy(2);
    std::size_t end = at_;
    while (end < in_.size() && (in_[end] == 'i' || in_[end] == 'm' || in_[end] == 'x' || in_[end] == '-')) ++end;
    if (end == in_.size() || (in_[end] != ')' && in_[end] != ':')) return;
    for (; at_ < end; ++at_) out_ += in_[at_] == 'm' ? 's' : in_[at_];
  }

  void class_character(char c) {
    if (c == ']') {
      in_class_ = false;
      copy(1);
    } else if (c == '[' && peek(1) == ':') {
      const auto end = in_.find(":]", at_ + 2);
      copy(end == std::string_view::npos ? 1 : end + 2 - at_);
    } else if (c == '[' || (c == '&' && peek(1) == '&')) {
      reason_ = "character classes inside character classes are not supported in a regular expression";
    } else {
      copy(1);
    }
  }

  void property() {
    const bool braces = peek(2) == '{';
    const auto end = braces ? in_.find('}', at_ + 3) : at_ + 2;
    if (end == std::string_view::npos || end >= in_.size()) return copy(2);
    auto name = braces ? in_.substr(at_ + 3, end - at_ - 3) : in_.substr(at_ + 2, 1);
    bool negated = in_[at_ + 1] == 'P';
    if (name.starts_with('^')) {
      negated = !negated;
      name.remove_prefix(1);
    }
    at_ = end + 1;
    name = short_name(name);
    const auto native = (negated ? "\\P{" : "\\p{") + std::string(name) + '}';
    const auto added = newest_ ? added_ranges(name) : std::string();
    if (added.empty() || (in_class_ && negated))
      out_ += native;
    else if (in_class_)
      out_ += native + added;
    else
      out_ += (negated ? "[^\\p{" : "[\\p{") + std::string(name) + '}' + added + ']';
  }

  std::string word_members() const {
    std::string out;
    for (const auto* part : {"L", "M", "Nd", "Nl", "Pc"})
      out += "\\p{" + std::string(part) + '}' + (newest_ ? added_ranges(part) : std::string());
    return out += other_word_characters;
  }

  /// A shorthand as members of a class, opening one where there is none.
  void members(std::string_view ranges, bool negated = false) {
    if (in_class_)
      out_ += ranges;
    else
      out_ += (negated ? "[^" : "[") + std::string(ranges) + ']';
    at_ += 2;
  }

  void escape() {
    switch (const char kind = peek(1)) {
      case 'p':
      case 'P':
        return property();
      case 's':
        return members(space_ranges);
      case 'S':
        return members(not_space_ranges);
      case 'w':
        return members(word_members());
      case 'W':
        if (in_class_) return copy(2);
        return members(word_members(), true);
      case 'd':
        return members("\\p{Nd}" + (newest_ ? added_ranges("Nd") : std::string()));
      case 'D':
        if (in_class_) return copy(2);
        return members("\\p{Nd}" + (newest_ ? added_ranges("Nd") : std::string()), true);
      case 'h':
        return members("0-9A-Fa-f");
      case 'H':
        if (in_class_) return members("\\x00-/:-@G-`g-\\x{10FFFF}");
        return members("0-9A-Fa-f", true);
      case 'b':
      case 'B': {
        if (in_class_) return copy(2);
        const auto w = '[' + word_members() + ']';
        out_ += kind == 'b' ? "(?:(?<=" + w + ")(?!" + w + ")|(?<!" + w + ")(?=" + w + "))"
                            : "(?:(?<=" + w + ")(?=" + w + ")|(?<!" + w + ")(?!" + w + "))";
        at_ += 2;
        return;
      }
      case 'u':
        if (in_.size() - at_ < 6) return copy(2);
        out_ += "\\x{" + std::string(in_.substr(at_ + 2, 4)) + '}';
        at_ += 6;
        return;
      default:
        return copy(at_ + 1 < in_.size() ? 2 : 1);
    }
  }

  std::string_view in_;
  bool newest_;
  std::size_t at_ = 0;
  bool in_class_ = false;
  bool interval_ = false;            // inside "{n,m}"
  std::size_t atom_ = 0;             // where the last atom begins in out_
  std::vector<std::size_t> groups_;  // where open groups begin in out_
  std::string out_;
  std::optional<std::string> reason_;
};

}  // namespace

result<std::string> translate_regex(std::string_view oniguruma, regex_tables tables, std::string_view place) {
  translator translation(oniguruma, tables);
  auto out = translation.run();
  if (!out) return error{error_kind::unsupported, translation.reason(), std::string(place)};
  return *std::move(out);
}

}  // namespace troupe::model
