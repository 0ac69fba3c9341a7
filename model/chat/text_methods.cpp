#include "model/chat/text_methods.hpp"

#include <algorithm>

#include "model/chat/letters.hpp"

namespace troupe::model::jinja {
namespace {

/// A template that pads wider than this means harm.
constexpr std::int64_t max_width = 1 << 20;

/// Begin and end of the runs without white space.
std::vector<std::pair<std::size_t, std::size_t>> words_of(const std::string& bytes) {
  std::vector<std::pair<std::size_t, std::size_t>> out;
  bool inside = false;
  for (std::size_t at = 0; at < bytes.size(); at += character_length(bytes[at])) {
    const bool space = is_space(character_at(bytes, at));
    if (!space && !inside) out.emplace_back(at, bytes.size());
    if (space && inside) out.back().second = at;
    inside = !space;
  }
  return out;
}

value split_at_space(const text& t, std::int64_t most, bool from_right) {
  const auto words = words_of(t.bytes());
  const std::size_t whole = most < 0 ? words.size() : std::min(words.size(), static_cast<std::size_t>(most));
  const bool rest = whole < words.size();
  sequence out;
  if (from_right) {
    if (rest) out.emplace_back(t.substr(0, words[words.size() - whole - 1].second));
    for (std::size_t i = words.size() - whole; i < words.size(); ++i)
      out.emplace_back(t.substr(words[i].first, words[i].second - words[i].first));
    return value::list(std::move(out));
  }
  for (std::size_t i = 0; i < whole; ++i) out.emplace_back(t.substr(words[i].first, words[i].second - words[i].first));
  if (rest) out.emplace_back(t.substr(words[whole].first));
  return value::list(std::move(out));
}

value split_lines(const text& t, bool keep_ends) {
  sequence out;
  const std::string& bytes = t.bytes();
  std::size_t from = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t length = bytes.compare(at, 2, "\r\n") == 0 ? 2 : character_length(bytes[at]);
    if (is_line_end(character_at(bytes, at))) {
      out.emplace_back(t.substr(from, at - from + (keep_ends ? length : 0)));
      from = at + length;
    }
    at += length;
  }
  if (from < bytes.size()) out.emplace_back(t.substr(from));
  return value::list(std::move(out));
}

bool begins_or_ends(const text& t, const value& with, bool begins) {
  if (const auto* l = with.as<list_value>())
    return std::any_of(l->items->begin(), l->items->end(),
                       [&](const value& one) { return begins_or_ends(t, one, begins); });
  const std::string part = text_of(with, "the argument of startswith and endswith").bytes();
  return begins ? t.bytes().starts_with(part) : t.bytes().ends_with(part);
}

value partition(const text& t, const text& mark, bool from_right) {
  if (mark.empty()) throw failure("empty separator");
  const auto at = from_right ? t.bytes().rfind(mark.bytes()) : t.bytes().find(mark.bytes());
  if (at == std::string::npos)
    return from_right ? value::list({text(), text(), t}, true) : value::list({t, text(), text()}, true);
  return value::list({t.substr(0, at), mark, t.substr(at + mark.size())}, true);
}

text expand_tabs(const text& t, std::int64_t width) {
  if (width > max_width) throw failure("expandtabs: the width is too large");
  text out;
  std::int64_t column = 0;
  for (std::size_t at = 0; at < t.size(); at += character_length(t.bytes()[at])) {
    const char c = t.bytes()[at];
    if (c == '\t') {
      const std::int64_t pad = width > 0 ? width - column % width : 0;
      out.append(std::string(static_cast<std::size_t>(pad), ' '), t.from_user(at));
      if (out.size() > std::size_t{16} * max_width) throw failure("expandtabs makes too much text");
      column += pad;
    } else {
      out += t.substr(at, character_length(c));
      column = c == '\n' || c == '\r' ? 0 : column + 1;
    }
  }
  return out;
}

text zero_filled(const text& t, std::int64_t width) {
  const bool sign = t.bytes().starts_with('+') || t.bytes().starts_with('-');
  text out = t.substr(0, sign ? 1 : 0);
  out += padded(t.substr(sign ? 1 : 0), width - (sign ? 1 : 0), '>', '0');
  return out;
}

value found(const text& t, std::string_view name, const arguments& a) {
  const auto count = static_cast<std::int64_t>(character_count(t.bytes()));
  const auto bound = [&](std::size_t index, std::int64_t otherwise) {
    const std::int64_t at = a.get(index, "").whole().value_or(otherwise);
    return std::clamp<std::int64_t>(at < 0 ? at + count : at, 0, count);
  };
  const std::string part = text_of(a.get(0, "sub"), "the argument of " + std::string(name)).bytes();
  const std::int64_t first = bound(1, 0);
  const std::int64_t last = bound(2, count);
  const bool possible = first <= last && a.get(1, "").whole().value_or(0) <= count;
  const std::size_t begin = character_offset(t.bytes(), static_cast<std::size_t>(first));
  const std::size_t end = character_offset(t.bytes(), static_cast<std::size_t>(last));
  const std::string_view within = possible ? std::string_view(t.bytes()).substr(begin, end - begin) : "";
  if (name == "count") {
    if (!possible) return value::integer(0);
    if (part.empty()) return value::integer(last - first + 1);
    std::int64_t times = 0;
    for (auto at = within.find(part); at != std::string::npos; at = within.find(part, at + part.size())) ++times;
    return value::integer(times);
  }
  const auto at = !possible ? std::string::npos : name.starts_with('r') ? within.rfind(part) : within.find(part);
  if (at == std::string::npos) {
    if (name.ends_with("index")) throw failure("substring not found");
    return value::integer(-1);
  }
  return value::integer(first + static_cast<std::int64_t>(character_count(within.substr(0, at))));
}

text without_affix(const text& t, std::string_view name, const text& affix) {
  const std::string& part = affix.bytes();
  if (name == "removeprefix") return t.bytes().starts_with(part) ? t.substr(part.size()) : t;
  return t.bytes().ends_with(part) ? t.substr(0, t.size() - part.size()) : t;
}

text padded_by(const text& t, std::string_view name, const arguments& a) {
  const auto width = a.get(0, "width").whole();
  if (!width) throw failure(std::string(name) + " needs a width");
  const value fill = a.get(1, "fillchar");
  const std::string with = fill.is<undefined>() ? " " : text_of(fill, "the fill character").bytes();
  if (with.size() != 1) throw failure("The fill character must be exactly one character long");
  return padded(t, *width, name == "center" ? '^' : name == "ljust" ? '<' : '>', with[0], true);
}

/// Methods that Python has and templates have no use for: refused by name.
constexpr std::string_view refused[] = {"encode", "translate", "maketrans", "format_map"};

constexpr std::string_view names[] = {
    "upper",        "lower",   "casefold",  "capitalize", "title",      "strip",     "lstrip",
    "rstrip",       "split",   "rsplit",    "splitlines", "startswith", "endswith",  "replace",
    "join",         "find",    "index",     "rfind",      "rindex",     "count",     "removeprefix",
    "removesuffix", "isdigit", "isnumeric", "isdecimal",  "isalpha",    "isalnum",   "isspace",
    "isascii",      "isupper", "islower",   "istitle",    "format",     "partition", "rpartition",
    "zfill",        "center",  "ljust",     "rjust",      "swapcase",   "expandtabs"};

bool listed(const auto& list, std::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

}  // namespace

bool is_text_method(std::string_view name) { return listed(names, name) || listed(refused, name); }

text text_of(const value& v, std::string_view what) {
  if (const auto* t = v.as<text>()) return *t;
  throw failure(std::string(what) + " must be a string, not " + v.type_name());
}

std::optional<std::string> characters_of(const value& v) {
  if (const auto* t = v.as<text>()) return t->bytes();
  return std::nullopt;
}

value split(const text& t, const value& separator, std::int64_t most, bool from_right) {
  sequence out;
  const std::string& bytes = t.bytes();
  if (!separator.is<text>()) return split_at_space(t, most, from_right);
  const std::string& mark = separator.as<text>()->bytes();
  if (mark.empty()) throw failure("empty separator");
  if (from_right && most >= 0) {
    std::size_t end = bytes.size();
    while (most-- > 0) {
      if (end < mark.size()) break;
      const auto at = bytes.rfind(mark, end - mark.size());
      if (at == std::string::npos) break;
      out.emplace_back(t.substr(at + mark.size(), end - at - mark.size()));
      end = at;
    }
    out.emplace_back(t.substr(0, end));
    std::reverse(out.begin(), out.end());
    return value::list(std::move(out));
  }
  std::size_t from = 0;
  for (auto at = bytes.find(mark);
       at != std::string::npos && (most < 0 || static_cast<std::int64_t>(out.size()) < most);
       at = bytes.find(mark, from)) {
    out.emplace_back(t.substr(from, at - from));
    from = at + mark.size();
  }
  out.emplace_back(t.substr(from));
  return value::list(std::move(out));
}

text join(const sequence& items, const text& separator) {
  text out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i != 0) out += separator;
    out += to_text(items[i]);
  }
  return out;
}

text padded(const text& t, std::int64_t width, char where, char fill, bool left_heavy) {
  const auto count = static_cast<std::int64_t>(character_count(t.bytes()));
  if (width <= count) return t;
  if (width > max_width) throw failure("a width of " + std::to_string(width) + " is too large");
  const std::int64_t pad = width - count;
  // str.center gives the odd one to the left only where the width is odd.
  const std::int64_t left = where == '<' ? 0 : where == '>' ? pad : pad / 2 + (left_heavy ? (pad & width & 1) : 0);
  text out(std::string(static_cast<std::size_t>(left), fill));
  out += t;
  out += text(std::string(static_cast<std::size_t>(pad - left), fill));
  return out;
}

text trimmed(const text& subject, const std::optional<std::string>& characters, bool left, bool right) {
  const std::string& bytes = subject.bytes();
  const auto goes = [&](std::size_t at) {
    return characters ? characters->find(bytes.substr(at, character_length(bytes[at]))) != std::string::npos
                      : is_space(character_at(bytes, at));
  };
  std::size_t begin = 0;
  std::size_t end = bytes.size();
  while (left && begin < end && goes(begin)) begin += character_length(bytes[begin]);
  while (right && end > begin) {
    std::size_t last = end - 1;
    while (last > begin && (static_cast<unsigned char>(bytes[last]) & 0xC0U) == 0x80U) --last;
    if (!goes(last)) break;
    end = last;
  }
  return subject.substr(begin, end - begin);
}

text replace_all(const text& subject, const text& from, const text& to, std::int64_t count) {
  text out;
  std::size_t at = 0;
  const std::string& bytes = subject.bytes();
  if (from.empty()) {
    while (count-- != 0) {
      out += to;
      if (at >= bytes.size()) return out;
      out += subject.substr(at, character_length(bytes[at]));
      at += character_length(bytes[at]);
    }
    out += subject.substr(at);
    return out;
  }
  while (count != 0) {
    const auto next = bytes.find(from.bytes(), at);
    if (next == std::string::npos) break;
    out += subject.substr(at, next - at);
    out += to;
    at = next + from.size();
    --count;
  }
  out += subject.substr(at);
  return out;
}

value text_method(const text& t, std::string_view name, arguments& a) {
  const auto count = [&](std::size_t index, const char* key) { return a.get(index, key).whole().value_or(-1); };
  if (name == "upper") return upper(t);
  if (name == "lower") return lower(t);
  if (name == "casefold") return fold(t);
  if (name == "capitalize") return capitalize(t);
  if (name == "title") return title(t);
  if (name == "swapcase") return swap_case(t);
  if (name == "strip") return trimmed(t, characters_of(a.get(0, "chars")), true, true);
  if (name == "lstrip") return trimmed(t, characters_of(a.get(0, "chars")), true, false);
  if (name == "rstrip") return trimmed(t, characters_of(a.get(0, "chars")), false, true);
  if (name == "split") return split(t, a.get(0, "sep"), count(1, "maxsplit"), false);
  if (name == "rsplit") return split(t, a.get(0, "sep"), count(1, "maxsplit"), true);
  if (name == "splitlines") return split_lines(t, a.get(0, "keepends").truthy());
  if (name == "startswith") return begins_or_ends(t, a.get(0, "prefix"), true);
  if (name == "endswith") return begins_or_ends(t, a.get(0, "suffix"), false);
  if (name == "replace")
    return replace_all(t, text_of(a.get(0, "old"), "replace's first argument"),
                       text_of(a.get(1, "new"), "replace's second argument"), count(2, "count"));
  if (name == "join") {
    const sequence items = items_of(a.get(0, "iterable"));
    for (const value& item : items) (void)text_of(item, "an item of join");
    return join(items, t);
  }
  if (name == "find" || name == "index" || name == "rfind" || name == "rindex" || name == "count")
    return found(t, name, a);
  if (name == "removeprefix" || name == "removesuffix")
    return without_affix(t, name, text_of(a.get(0, "affix"), "the argument of " + std::string(name)));
  if (name == "isupper" || name == "islower" || name == "istitle") return has_case(t, name);
  if (name.starts_with("is")) return all_of_class(t, name);
  if (name == "partition" || name == "rpartition")
    return partition(t, text_of(a.get(0, "sep"), "the separator"), name == "rpartition");
  if (name == "zfill") return zero_filled(t, count(0, "width"));
  if (name == "center" || name == "ljust" || name == "rjust") return padded_by(t, name, a);
  if (name == "expandtabs") return expand_tabs(t, a.get(0, "tabsize").whole().value_or(8));
  if (name == "format") return format_braces(t, a);
  throw failure("str." + std::string(name) + " is not supported in chat templates");
}

}  // namespace troupe::model::jinja
