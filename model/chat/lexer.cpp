#include <algorithm>

#include "model/chat/syntax.hpp"

namespace troupe::model::jinja {
namespace {

bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v'; }

class lexer {
 public:
  explicit lexer(std::string_view source) {
    source_.reserve(source.size());
    for (std::size_t i = 0; i < source.size(); ++i) {
      if (source[i] == '\r') {
        source_ += '\n';
        if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
      } else {
        source_ += source[i];
      }
    }
    if (source_.ends_with('\n')) source_.pop_back();
  }

  std::vector<token> run() {
    while (at_ < source_.size()) {
      const std::size_t tag = next_tag(at_);
      if (tag == std::string::npos) {
        add_data(source_.substr(at_));
        break;
      }
      take_tag(tag);
    }
    tokens_.push_back({token_kind::end, "", line_});
    return std::move(tokens_);
  }

 private:
  std::size_t next_tag(std::size_t from) const {
    for (std::size_t at = source_.find('{', from); at != std::string::npos && at + 1 < source_.size();
         at = source_.find('{', at + 1))
      if (source_[at + 1] == '{' || source_[at + 1] == '%' || source_[at + 1] == '#') return at;
    return std::string::npos;
  }

  void take_tag(std::size_t tag) {
    const char kind = source_[tag + 1];
    const char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
    std::string data = source_.substr(at_, tag - at_);
    if (sign == '-') {
      data.erase(std::find_if_not(data.rbegin(), data.rend(), is_space).base(), data.end());
    } else if (kind != '{' && sign != '+') {
      strip_line_start(data);
    }
    add_data(data);
    line_ += static_cast<std::size_t>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_ + data.size()),
                                                 source_.begin() + static_cast<std::ptrdiff_t>(tag), '\n'));
    at_ = tag + 2 + (sign == '-' || sign == '+' ? 1 : 0);
    if (kind == '#') return skip_comment();
    if (kind == '%' && take_raw()) return;
    tokens_.push_back({kind == '{' ? token_kind::begin_output : token_kind::begin_block, "", line_});
    take_code(kind == '{' ? '}' : '%');
  }

  /// lstrip_blocks: blanks before a block tag at the start of its line.
  void strip_line_start(std::string& data) const {
    const auto newline = data.rfind('\n');
    const std::size_t begin = newline == std::string::npos ? 0 : newline + 1;
    const bool whole_line = newline != std::string::npos || at_ == 0 || source_[at_ - 1] == '\n';
    if (whole_line && std::all_of(data.begin() + static_cast<std::ptrdiff_t>(begin), data.end(),
                                  [](char c) { return c == ' ' || c == '\t'; }))
      data.resize(begin);
  }

  void skip_comment() {
    const auto end = source_.find("#}", at_);
    if (end == std::string::npos) throw failure("Missing end of comment tag", line_);
    const bool strip = end > at_ && source_[end - 1] == '-';
    const bool keep = end > at_ && source_[end - 1] == '+';
    advance_to(end + 2);
    after_tag(strip, !keep);
  }

  /// {% raw %} ... {% endraw %}
  bool take_raw() {
    std::size_t at = skip_blanks(at_);
    if (source_.compare(at, 3, "raw") != 0) return false;
    at = skip_blanks(at + 3);
    bool strip = false;
    if (at < source_.size() && (source_[at] == '-' || source_[at] == '+')) strip = source_[at++] == '-';
    if (source_.compare(at, 2, "%}") != 0) return false;
    advance_to(at + 2);
    after_tag(strip, true);
    for (std::size_t tag = source_.find("{%", at_); tag != std::string::npos; tag = source_.find("{%", tag + 2)) {
      std::size_t inner = tag + 2;
      const bool strip_before = inner < source_.size() && source_[inner] == '-';
      if (strip_before || (inner < source_.size() && source_[inner] == '+')) ++inner;
      inner = skip_blanks(inner);
      if (source_.compare(inner, 6, "endraw") != 0) continue;
      inner = skip_blanks(inner + 6);
      bool strip_after = false;
      if (inner < source_.size() && (source_[inner] == '-' || source_[inner] == '+'))
        strip_after = source_[inner++] == '-';
      if (source_.compare(inner, 2, "%}") != 0) continue;
      std::string data = source_.substr(at_, tag - at_);
      if (strip_before)
        data.erase(std::find_if_not(data.rbegin(), data.rend(), is_space).base(), data.end());
      else
        strip_line_start(data);
      if (!data.empty()) tokens_.push_back({token_kind::data, data, line_});
      advance_to(inner + 2);
      after_tag(strip_after, true);
      return true;
    }
    throw failure("Missing end of raw directive", line_);
  }

  std::size_t skip_blanks(std::size_t at) const {
    while (at < source_.size() && is_space(source_[at])) ++at;
    return at;
  }

  void advance_to(std::size_t to) {
    line_ += static_cast<std::size_t>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_),
                                                 source_.begin() + static_cast<std::ptrdiff_t>(to), '\n'));
    at_ = to;
  }

  void after_tag(bool strip, bool trim) {
    if (strip)
      advance_to(skip_blanks(at_));
    else if (trim && at_ < source_.size() && source_[at_] == '\n')
      advance_to(at_ + 1);
  }

  void add_data(const std::string& data) {
    if (!data.empty()) tokens_.push_back({token_kind::data, data, line_});
    line_ += static_cast<std::size_t>(std::count(data.begin(), data.end(), '\n'));
  }

  /// Tokens up to the tag's end; `closer` is '}' of an output or '%' of a block.
  void take_code(char closer) {
    std::string open;  // brackets: inside them, "}}" does not end the tag
    while (true) {
      advance_to(skip_blanks(at_));
      if (at_ >= source_.size()) throw failure("unexpected end of template inside a tag", line_);
      const char c = source_[at_];
      if (open.empty() && ends_tag(closer)) return;
      if (is_name_start(c))
        take_name();
      else if (is_digit(c))
        take_number();
      else if (c == '"' || c == '\'')
        take_string(c);
      else
        take_operator(open);
    }
  }

  bool ends_tag(char closer) {
    const char sign = source_[at_];
    const std::size_t at = at_ + (sign == '-' || sign == '+' ? 1 : 0);
    if (at + 1 >= source_.size() || source_[at] != closer || source_[at + 1] != '}') return false;
    tokens_.push_back({closer == '}' ? token_kind::end_output : token_kind::end_block, "", line_});
    advance_to(at + 2);
    after_tag(sign == '-', closer == '%' && sign != '+');
    return true;
  }

  void take_name() {
    std::size_t end = at_;
    while (end < source_.size() && (is_name_start(source_[end]) || is_digit(source_[end]))) ++end;
    tokens_.push_back({token_kind::name, source_.substr(at_, end - at_), line_});
    at_ = end;
  }

  void take_number() {
    std::size_t end = at_;
    bool real = false;
    const auto digits = [&] {
      while (end < source_.size() && (is_digit(source_[end]) || source_[end] == '_')) ++end;
    };
    digits();
    if (end + 1 < source_.size() && source_[end] == '.' && is_digit(source_[end + 1])) {
      real = true;
      ++end;
      digits();
    }
    if (end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
      std::size_t after = end + 1;
      if (after < source_.size() && (source_[after] == '+' || source_[after] == '-')) ++after;
      if (after < source_.size() && is_digit(source_[after])) {
        real = true;
        end = after;
        digits();
      }
    }
    std::string text = source_.substr(at_, end - at_);
    std::erase(text, '_');
    tokens_.push_back({real ? token_kind::number : token_kind::integer, text, line_});
    at_ = end;
  }

  void take_string(char quote) {
    std::string text;
    std::size_t at = at_ + 1;
    while (at < source_.size() && source_[at] != quote) {
      if (source_[at] == '\\' && at + 1 < source_.size())
        take_escape(at, text);
      else
        text += source_[at++];
    }
    if (at >= source_.size()) throw failure("a string is not closed", line_);
    tokens_.push_back({token_kind::string, text, line_});
    advance_to(at + 1);
  }

  void take_escape(std::size_t& at, std::string& out) const {
    const char c = source_[at + 1];
    at += 2;
    switch (c) {
      case 'n':
        out += '\n';
        return;
      case 't':
        out += '\t';
        return;
      case 'r':
        out += '\r';
        return;
      case 'b':
        out += '\b';
        return;
      case 'f':
        out += '\f';
        return;
      case 'v':
        out += '\v';
        return;
      case 'a':
        out += '\a';
        return;
      case '0':
        out += '\0';
        return;
      case '\n':
        return;
      case 'x':
        return take_code_point(at, 2, out);
      case 'u':
        return take_code_point(at, 4, out);
      case 'U':
        return take_code_point(at, 8, out);
      case '\\':
      case '\'':
      case '"':
        out += c;
        return;
      default:
        out += {'\\', c};
    }
  }

  void take_code_point(std::size_t& at, std::size_t digits, std::string& out) const {
    const std::string hex = source_.substr(at, digits);
    if (hex.size() != digits || hex.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos)
      throw failure("a broken escape in a string", line_);
    at += digits;
    const unsigned long c = std::stoul(hex, nullptr, 16);
    if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) throw failure("an escape that is no character", line_);
    if (c < 0x80)
      out += static_cast<char>(c);
    else if (c < 0x800)
      out += {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))};
    else if (c < 0x10000)
      out += {static_cast<char>(0xE0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 0x3F)),
              static_cast<char>(0x80 | (c & 0x3F))};
    else
      out += {static_cast<char>(0xF0 | c >> 18), static_cast<char>(0x80 | (c >> 12 & 0x3F)),
              static_cast<char>(0x80 | (c >> 6 & 0x3F)), static_cast<char>(0x80 | (c & 0x3F))};
  }

  void take_operator(std::string& open) {
    for (const std::string_view two : {"//", "**", "==", "!=", ">=", "<="}) {
      if (source_.compare(at_, 2, two) != 0) continue;
      tokens_.push_back({token_kind::op, std::string(two), line_});
      at_ += 2;
      return;
    }
    const char c = source_[at_];
    if (std::string_view("+-*/%~()[]{}<>=.,:|;").find(c) == std::string_view::npos)
      throw failure(std::string("unexpected char '") + c + "'", line_);
    if (c == '(' || c == '[' || c == '{') open += c;
    if (c == ')' || c == ']' || c == '}') {
      if (open.empty()) throw failure(std::string("unexpected '") + c + "'", line_);
      open.pop_back();
    }
    tokens_.push_back({token_kind::op, std::string(1, c), line_});
    ++at_;
  }

  std::string source_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  std::vector<token> tokens_;
};

}  // namespace

std::vector<token> tokenize(std::string_view source) { return lexer(source).run(); }

}  // namespace troupe::model::jinja
