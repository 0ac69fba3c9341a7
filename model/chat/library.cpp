#include "model/chat/library.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::model::jinja {
namespace {

constexpr std::string_view blanks = " \t\n\r\f\v";

text text_of(const value& v, std::string_view what) {
  if (const auto* t = v.as<text>()) return *t;
  throw failure(std::string(what) + " must be a string, not " + v.type_name());
}

std::string ascii_case(std::string bytes, bool upper) {
  for (char& c : bytes) {
    if (upper && c >= 'a' && c <= 'z') c = static_cast<char>(c - 32);
    if (!upper && c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  }
  return bytes;
}

text upper(const text& t) { return t.with_bytes(ascii_case(t.bytes(), true)); }
text lower(const text& t) { return t.with_bytes(ascii_case(t.bytes(), false)); }

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80;
}

text capitalize(const text& t) {
  std::string bytes = ascii_case(t.bytes(), false);
  if (!bytes.empty()) bytes.replace(0, 1, ascii_case(bytes.substr(0, 1), true));
  return t.with_bytes(std::move(bytes));
}

text title(const text& t) {
  std::string bytes = ascii_case(t.bytes(), false);
  bool inside = false;
  for (char& c : bytes) {
    if (!inside && is_letter(c)) c = ascii_case(std::string(1, c), true)[0];
    inside = is_letter(c) || c == '\'';
  }
  return t.with_bytes(std::move(bytes));
}

value split(const text& t, const value& separator, std::int64_t most, bool from_right) {
  sequence out;
  const std::string& bytes = t.bytes();
  if (!separator.is<text>()) {  // runs of white space
    std::size_t at = bytes.find_first_not_of(blanks);
    while (at != std::string::npos) {
      const bool last = most >= 0 && static_cast<std::int64_t>(out.size()) == most;
      const std::size_t end = last ? bytes.size() : std::min(bytes.find_first_of(blanks, at), bytes.size());
      out.emplace_back(last ? trimmed(t.substr(at), {}, false, true) : t.substr(at, end - at));
      at = end >= bytes.size() ? std::string::npos : bytes.find_first_not_of(blanks, end);
    }
    return value::list(std::move(out));
  }
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

value split_lines(const text& t) {
  sequence out;
  std::size_t from = 0;
  const std::string& bytes = t.bytes();
  while (from < bytes.size()) {
    const auto at = bytes.find_first_of("\n\r", from);
    if (at == std::string::npos) break;
    out.emplace_back(t.substr(from, at - from));
    from = at + (bytes.compare(at, 2, "\r\n") == 0 ? 2 : 1);
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

template <class Predicate>
bool all_of_bytes(const text& t, Predicate is) {
  return !t.empty() && std::all_of(t.bytes().begin(), t.bytes().end(), is);
}

std::optional<std::string> characters_of(const value& v) {
  if (const auto* t = v.as<text>()) return t->bytes();
  return std::nullopt;
}

value text_method(const text& t, std::string_view name, arguments& a) {
  const auto count = [&](std::size_t index, const char* key) { return a.get(index, key).whole().value_or(-1); };
  if (name == "upper") return upper(t);
  if (name == "lower" || name == "casefold") return lower(t);
  if (name == "capitalize") return capitalize(t);
  if (name == "title") return title(t);
  if (name == "strip") return trimmed(t, characters_of(a.get(0, "chars")), true, true);
  if (name == "lstrip") return trimmed(t, characters_of(a.get(0, "chars")), true, false);
  if (name == "rstrip") return trimmed(t, characters_of(a.get(0, "chars")), false, true);
  if (name == "split") return split(t, a.get(0, "sep"), count(1, "maxsplit"), false);
  if (name == "rsplit") return split(t, a.get(0, "sep"), count(1, "maxsplit"), true);
  if (name == "splitlines") return split_lines(t);
  if (name == "startswith") return begins_or_ends(t, a.get(0, "prefix"), true);
  if (name == "endswith") return begins_or_ends(t, a.get(0, "suffix"), false);
  if (name == "replace") return replace_all(t, to_text(a.get(0, "old")), to_text(a.get(1, "new")), count(2, "count"));
  if (name == "join") return join(items_of(a.get(0, "iterable")), t);
  if (name == "find" || name == "index" || name == "rfind") {
    const std::string part = text_of(a.get(0, "sub"), "find's argument").bytes();
    const auto at = name == "rfind" ? t.bytes().rfind(part) : t.bytes().find(part);
    if (at == std::string::npos && name == "index") throw failure("substring not found");
    return value::integer(
        at == std::string::npos ? -1 : static_cast<std::int64_t>(character_count(t.bytes().substr(0, at))));
  }
  if (name == "count") {
    const std::string part = text_of(a.get(0, "sub"), "count's argument").bytes();
    std::int64_t found = 0;
    if (part.empty()) return value::integer(static_cast<std::int64_t>(character_count(t.bytes())) + 1);
    for (auto at = t.bytes().find(part); at != std::string::npos; at = t.bytes().find(part, at + part.size())) ++found;
    return value::integer(found);
  }
  if (name == "removeprefix" || name == "removesuffix") {
    const std::string part = text_of(a.get(0, "affix"), "the argument").bytes();
    if (name == "removeprefix") return t.bytes().starts_with(part) ? t.substr(part.size()) : t;
    return t.bytes().ends_with(part) ? t.substr(0, t.size() - part.size()) : t;
  }
  if (name == "isdigit" || name == "isnumeric" || name == "isdecimal")
    return all_of_bytes(t, [](char c) { return c >= '0' && c <= '9'; });
  if (name == "isalpha") return all_of_bytes(t, is_letter);
  if (name == "isalnum") return all_of_bytes(t, [](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
  if (name == "isspace") return all_of_bytes(t, [](char c) { return blanks.find(c) != std::string_view::npos; });
  if (name == "isupper") return t.bytes() == ascii_case(t.bytes(), true) && t.bytes() != ascii_case(t.bytes(), false);
  if (name == "islower") return t.bytes() == ascii_case(t.bytes(), false) && t.bytes() != ascii_case(t.bytes(), true);
  // format: "{}" and "{0}" and "{name}" without format specifications
  text out;
  const std::string& bytes = t.bytes();
  std::size_t next = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    if (bytes.compare(at, 2, "{{") == 0 || bytes.compare(at, 2, "}}") == 0) {
      out += t.substr(at, 1);
      at += 2;
    } else if (bytes[at] == '{') {
      const auto end = bytes.find('}', at);
      if (end == std::string::npos) throw failure("Single '{' encountered in format string");
      const std::string key = bytes.substr(at + 1, end - at - 1);
      const bool number = !key.empty() && key.size() < 4 && key.find_first_not_of("0123456789") == std::string::npos;
      const value found = key.empty() ? a.get(next++, "")
                          : number    ? a.get(std::stoul(key), "")
                                      : a.get(a.positional.size(), key);
      if (found.is<undefined>()) throw failure("format has no argument '" + key + "'");
      out += to_text(found);
      at = end + 1;
    } else {
      out += t.substr(at, 1);
      ++at;
    }
  }
  return out;
}

constexpr std::string_view text_methods[] = {
    "upper",   "lower",   "casefold",   "capitalize",   "title",        "strip",   "lstrip",    "rstrip",
    "split",   "rsplit",  "splitlines", "startswith",   "endswith",     "replace", "join",      "find",
    "index",   "rfind",   "count",      "removeprefix", "removesuffix", "isdigit", "isnumeric", "isdecimal",
    "isalpha", "isalnum", "isspace",    "isupper",      "islower",      "format"};

value pair_list(const dictionary& d) {
  sequence out;
  for (const auto& [key, what] : d.members) out.push_back(value::list({value(key), what}, true));
  return value::list(std::move(out));
}

value dict_method(const dict_value& d, std::string_view name, arguments& a) {
  const dictionary& members = *d.members;
  if (name == "items") return pair_list(members);
  if (name == "get") {
    const value wanted = a.get(0, "key");
    if (const auto* k = wanted.as<text>())
      if (const value* found = members.find(k->bytes())) return *found;
    return a.has(1, "default") ? a.get(1, "default") : value(none{});
  }
  sequence out;
  for (const auto& [key, what] : members.members) out.push_back(name == "keys" ? value(key) : what);
  return value::list(std::move(out));
}

/// The key function of sort, min, unique and their kin.
value by_attribute(const value& item, const value& attribute, const host& runs) {
  if (attribute.is<undefined>() || attribute.is<none>()) return item;
  const auto* path = attribute.as<text>();
  if (path == nullptr) return runs.item(item, attribute);
  value current = item;
  std::size_t from = 0;
  while (from <= path->size()) {
    const auto dot = std::min(path->bytes().find('.', from), path->size());
    const std::string part = path->bytes().substr(from, dot - from);
    const bool number = !part.empty() && part.size() < 10 && part.find_first_not_of("0123456789") == std::string::npos;
    current = runs.item(current, number ? value::integer(std::stol(part)) : value(text(part)));
    from = dot + 1;
  }
  return current;
}

value folded(const value& v, bool case_sensitive) {
  const auto* t = v.as<text>();
  return t == nullptr || case_sensitive ? v : value(lower(*t));
}

value sorted(const value& subject, arguments& a, const host& runs) {
  sequence items = items_of(subject);
  const bool reverse = a.get(0, "reverse").truthy();
  const bool sensitive = a.get(1, "case_sensitive").truthy();
  const value attribute = a.get(2, "attribute");
  const auto key = [&](const value& v) { return folded(by_attribute(v, attribute, runs), sensitive); };
  std::stable_sort(items.begin(), items.end(), [&](const value& x, const value& y) {
    return reverse ? compare(key(y), key(x)) < 0 : compare(key(x), key(y)) < 0;
  });
  return value::list(std::move(items));
}

/// select, reject, selectattr, rejectattr
value selected(std::string_view name, const value& subject, const arguments& a, const host& runs) {
  const bool by_attr = name.ends_with("attr");
  const bool keep = name.starts_with("select");
  const value attribute = by_attr ? a.get(0, "") : value();
  const std::size_t first = by_attr ? 1 : 0;
  sequence out;
  for (const value& item : items_of(subject)) {
    const value tested = by_attr ? by_attribute(item, attribute, runs) : item;
    bool passes = tested.truthy();
    if (a.positional.size() > first) {
      arguments more;
      more.positional.assign(a.positional.begin() + static_cast<std::ptrdiff_t>(first) + 1, a.positional.end());
      passes = runs.test(text_of(a.positional[first], "the test's name").bytes(), tested, more);
    }
    if (passes == keep) out.push_back(item);
  }
  return value::list(std::move(out));
}

value mapped(const value& subject, const arguments& a, const host& runs) {
  sequence out;
  const bool by_attr = a.positional.empty();
  const value attribute = a.get(a.positional.size(), "attribute");
  const value fallback = a.get(a.positional.size(), "default");
  for (const value& item : items_of(subject)) {
    if (by_attr) {
      value found = by_attribute(item, attribute, runs);
      out.push_back(found.is<undefined>() && !fallback.is<undefined>() ? fallback : found);
    } else {
      arguments more;
      more.positional.assign(a.positional.begin() + 1, a.positional.end());
      more.named = a.named;
      out.push_back(runs.filter(text_of(a.positional[0], "map's filter").bytes(), item, more));
    }
  }
  return value::list(std::move(out));
}

value unique(const value& subject, const arguments& a, const host& runs) {
  sequence out;
  sequence seen;
  for (const value& item : items_of(subject)) {
    value key = folded(by_attribute(item, a.get(1, "attribute"), runs), a.get(0, "case_sensitive").truthy());
    if (std::any_of(seen.begin(), seen.end(), [&](const value& s) { return equal(s, key); })) continue;
    seen.push_back(std::move(key));
    out.push_back(item);
  }
  return value::list(std::move(out));
}

value extreme(const value& subject, const arguments& a, const host& runs, bool highest) {
  const sequence items = items_of(subject);
  if (items.empty()) return undefined{"No aggregated item, sequence was empty."};
  const auto key = [&](const value& v) {
    return folded(by_attribute(v, a.get(1, "attribute"), runs), a.get(0, "case_sensitive").truthy());
  };
  const value* best = &items[0];
  for (const value& item : items)
    if (highest ? compare(key(item), key(*best)) > 0 : compare(key(item), key(*best)) < 0) best = &item;
  return *best;
}

value rounded(const value& subject, const arguments& a) {
  const auto number = subject.number();
  if (!number) throw failure("round needs a number");
  const std::int64_t digits = a.get(0, "precision").whole().value_or(0);
  const value method = a.get(1, "method");
  const std::string how = method.is<text>() ? method.as<text>()->bytes() : "common";
  const double scale = std::pow(10.0, static_cast<double>(digits));
  const double scaled = *number * scale;
  const double whole = how == "ceil" ? std::ceil(scaled) : how == "floor" ? std::floor(scaled) : std::nearbyint(scaled);
  return whole / scale;
}

value to_integer(const value& subject, const arguments& a) {
  const value fallback = a.has(0, "default") ? a.get(0, "default") : value::integer(0);
  if (const auto whole = subject.whole()) return value::integer(*whole);
  if (const auto number = subject.number())
    return std::abs(*number) < 9e18 ? value::integer(static_cast<std::int64_t>(*number)) : fallback;
  const auto* t = subject.as<text>();
  if (t == nullptr) return fallback;
  const std::string bytes = trimmed(*t, {}, true, true).bytes();
  char* end = nullptr;
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

text indented(const text& t, const arguments& a) {
  const value width = a.get(0, "width");
  const text pad =
      width.is<text>()
          ? *width.as<text>()
          : text(std::string(static_cast<std::size_t>(std::clamp<std::int64_t>(width.whole().value_or(4), 0, 1000)),
                             ' '));
  const bool first = a.get(1, "first").truthy();
  const bool blank = a.get(2, "blank").truthy();
  text out;
  std::size_t from = 0;
  for (bool line_one = true;; line_one = false) {
    const auto at = t.bytes().find('\n', from);
    const text line = t.substr(from, at == std::string::npos ? at : at - from);
    if (line_one ? first : (blank || !line.empty())) out += pad;
    out += line;
    if (at == std::string::npos) return out;
    out += t.substr(at, 1);
    from = at + 1;
  }
}

text escaped(const text& t) {
  text out;
  for (std::size_t i = 0; i < t.size(); ++i) {
    const char c = t.bytes()[i];
    const char* entity = c == '&'    ? "&amp;"
                         : c == '<'  ? "&lt;"
                         : c == '>'  ? "&gt;"
                         : c == '"'  ? "&#34;"
                         : c == '\'' ? "&#39;"
                                     : nullptr;
    out += entity != nullptr ? text(entity, t.from_user(i)) : t.substr(i, 1);
  }
  return out;
}

value json_filter(const value& subject, const arguments& a) {
  json_style style;
  style.ascii = a.get(0, "ensure_ascii").truthy();
  if (const auto indent = a.get(1, "indent").whole())
    style.indent = static_cast<std::size_t>(std::clamp<std::int64_t>(*indent, 0, 64));
  const value separators = a.get(2, "separators");
  if (const auto* l = separators.as<list_value>(); l != nullptr && l->items->size() == 2) {
    style.item_separator = text_of((*l->items)[0], "a separator").bytes();
    style.key_separator = text_of((*l->items)[1], "a separator").bytes();
  }
  style.sort_keys = a.get(3, "sort_keys").truthy();
  return to_json(subject, style);
}

value sorted_items(const value& subject, const arguments& a) {
  const auto* d = subject.as<dict_value>();
  if (d == nullptr) throw failure("dictsort needs a dictionary");
  const value by = a.get(1, "by");
  const std::size_t part = by.is<text>() && by.as<text>()->bytes() == "value" ? 1 : 0;
  const bool reverse = a.get(2, "reverse").truthy();
  sequence pairs = items_of(pair_list(*d->members));
  const auto key = [&](const value& v) {
    return folded((*v.as<list_value>()->items)[part], a.get(0, "case_sensitive").truthy());
  };
  std::stable_sort(pairs.begin(), pairs.end(), [&](const value& x, const value& y) {
    return reverse ? compare(key(y), key(x)) < 0 : compare(key(x), key(y)) < 0;
  });
  return value::list(std::move(pairs));
}

value summed(const value& subject, const arguments& a, const host& runs) {
  value total = a.has(1, "start") ? a.get(1, "start") : value::integer(0);
  for (const value& item : items_of(subject)) total = add(total, by_attribute(item, a.get(0, "attribute"), runs));
  return total;
}

value batched(const value& subject, const arguments& a) {
  const std::int64_t size = a.get(0, "linecount").whole().value_or(0);
  if (size < 1) throw failure("batch needs a size of at least 1");
  sequence out;
  sequence row;
  for (const value& item : items_of(subject)) {
    row.push_back(item);
    if (static_cast<std::int64_t>(row.size()) < size) continue;
    out.push_back(value::list(std::exchange(row, {})));
  }
  if (!row.empty()) {
    if (a.has(1, "fill_with")) row.resize(static_cast<std::size_t>(size), a.get(1, "fill_with"));
    out.push_back(value::list(std::move(row)));
  }
  return value::list(std::move(out));
}

value grouped(const value& subject, const arguments& a, const host& runs) {
  arguments order;
  order.named = {{"attribute", a.get(0, "attribute")}};
  sequence out;
  for (const value& item : items_of(sorted(subject, order, runs))) {
    value key = by_attribute(item, a.get(0, "attribute"), runs);
    if (!out.empty() && equal((*out.back().as<list_value>()->items)[0], key)) {
      (*out.back().as<list_value>()->items)[1].as<list_value>()->items->push_back(item);
    } else {
      out.push_back(value::list({std::move(key), value::list({item})}, true));
    }
  }
  return value::list(std::move(out));
}

}  // namespace

text trimmed(const text& subject, const std::optional<std::string>& characters, bool left, bool right) {
  const std::string set = characters.value_or(std::string(blanks));
  std::size_t begin = 0;
  std::size_t end = subject.size();
  if (left) begin = std::min(subject.bytes().find_first_not_of(set), subject.size());
  if (right) {
    const auto last = subject.bytes().find_last_not_of(set);
    end = last == std::string::npos ? begin : std::max(begin, last + 1);
  }
  return subject.substr(begin, end - begin);
}

text replace_all(const text& subject, const text& from, const text& to, std::int64_t count) {
  text out;
  std::size_t at = 0;
  const std::string& bytes = subject.bytes();
  if (from.empty()) return subject;
  while (count != 0) {
    const auto found = bytes.find(from.bytes(), at);
    if (found == std::string::npos) break;
    out += subject.substr(at, found - at);
    out += to;
    at = found + from.size();
    --count;
  }
  out += subject.substr(at);
  return out;
}

value add(const value& a, const value& b) {
  if (const auto x = a.whole(), y = b.whole(); x && y) {
    std::int64_t sum = 0;
    if (__builtin_add_overflow(*x, *y, &sum)) throw failure("an integer overflows");
    return value::integer(sum);
  }
  if (const auto x = a.number(), y = b.number(); x && y) return *x + *y;
  if (const auto* t = a.as<text>(); t != nullptr && b.is<text>()) {
    text out = *t;
    out += *b.as<text>();
    return out;
  }
  const auto* l = a.as<list_value>();
  const auto* m = b.as<list_value>();
  if (l != nullptr && m != nullptr) {
    sequence out = *l->items;
    out.insert(out.end(), m->items->begin(), m->items->end());
    return value::list(std::move(out), l->tuple);
  }
  if (a.is<undefined>()) throw failure("'" + a.as<undefined>()->name + "' is undefined");
  if (b.is<undefined>()) throw failure("'" + b.as<undefined>()->name + "' is undefined");
  if (a.is<text>()) throw failure("can only concatenate str (not \"" + b.type_name() + "\") to str");
  throw failure("unsupported operand type(s) for +: '" + a.type_name() + "' and '" + b.type_name() + "'");
}

value format_percent(const text& pattern, const value& with) {
  const auto* l = with.as<list_value>();
  const sequence items = l != nullptr && l->tuple ? *l->items : sequence{with};
  text out;
  std::size_t next = 0;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    if (pattern.bytes()[at] != '%' || at + 1 >= pattern.size()) {
      out += pattern.substr(at, 1);
      continue;
    }
    const char kind = pattern.bytes()[++at];
    if (kind == '%') {
      out += text("%");
      continue;
    }
    if (next >= items.size()) throw failure("not enough arguments for format string");
    const value& item = items[next++];
    if (kind == 's')
      out += to_text(item);
    else if (kind == 'r')
      out += repr(item);
    else if (kind == 'd' && item.number())
      out += text(std::to_string(static_cast<std::int64_t>(*item.number())));
    else
      throw failure("this format string is not supported");
  }
  return out;
}

std::optional<value> method_of(const value& object, std::string_view name) {
  if (const auto* t = object.as<text>()) {
    if (std::find(std::begin(text_methods), std::end(text_methods), name) == std::end(text_methods))
      return std::nullopt;
    return value::function(std::string(name), [subject = *t, called = std::string(name)](arguments& a) {
      return text_method(subject, called, a);
    });
  }
  if (const auto* d = object.as<dict_value>(); d != nullptr && !d->is_namespace) {
    if (name != "items" && name != "keys" && name != "values" && name != "get") return std::nullopt;
    return value::function(std::string(name), [subject = *d, called = std::string(name)](arguments& a) {
      return dict_method(subject, called, a);
    });
  }
  if (const auto* l = object.as<list_value>(); l != nullptr && (name == "index" || name == "count")) {
    return value::function(std::string(name), [items = l->items, called = std::string(name)](arguments& a) -> value {
      const value wanted = a.get(0, "value");
      if (called == "count")
        return value::integer(
            std::count_if(items->begin(), items->end(), [&](const value& v) { return equal(v, wanted); }));
      const auto at = std::find_if(items->begin(), items->end(), [&](const value& v) { return equal(v, wanted); });
      if (at == items->end()) throw failure(to_text(wanted).bytes() + " is not in list");
      return value::integer(at - items->begin());
    });
  }
  return std::nullopt;
}

std::optional<value> apply_filter(std::string_view name, const value& subject, arguments& a, const host& runs) {
  const auto as_text = [&] { return to_text(subject); };
  if (name == "trim") return trimmed(as_text(), characters_of(a.get(0, "chars")), true, true);
  if (name == "upper") return upper(as_text());
  if (name == "lower") return lower(as_text());
  if (name == "capitalize") return capitalize(as_text());
  if (name == "title") return title(as_text());
  if (name == "string") return as_text();
  if (name == "safe") return subject;
  if (name == "escape" || name == "e") return escaped(as_text());
  if (name == "length" || name == "count") return value::integer(static_cast<std::int64_t>(length_of(subject)));
  if (name == "default" || name == "d") {
    const bool absent = subject.is<undefined>() || (a.get(1, "boolean").truthy() && !subject.truthy());
    return absent ? (a.has(0, "default_value") ? a.get(0, "default_value") : value(text(""))) : subject;
  }
  if (name == "tojson") return json_filter(subject, a);
  if (name == "join") {
    sequence items = items_of(subject);
    const value attribute = a.get(1, "attribute");
    if (!attribute.is<undefined>())
      for (value& item : items) item = by_attribute(item, attribute, runs);
    return join(items, to_text(a.get(0, "d")));
  }
  if (name == "replace") {
    const value count = a.get(2, "count");
    return replace_all(as_text(), to_text(a.get(0, "old")), to_text(a.get(1, "new")), count.whole().value_or(-1));
  }
  if (name == "first" || name == "last") {
    const sequence items = items_of(subject);
    if (items.empty()) return value(undefined{"No " + std::string(name) + " item, sequence was empty."});
    return name == "first" ? items.front() : items.back();
  }
  if (name == "list") return value::list(items_of(subject));
  if (name == "map") return mapped(subject, a, runs);
  if (name == "select" || name == "reject" || name == "selectattr" || name == "rejectattr")
    return selected(name, subject, a, runs);
  if (name == "sort") return sorted(subject, a, runs);
  if (name == "unique") return unique(subject, a, runs);
  if (name == "min" || name == "max") return extreme(subject, a, runs, name == "max");
  if (name == "sum") return summed(subject, a, runs);
  if (name == "batch") return batched(subject, a);
  if (name == "groupby") return grouped(subject, a, runs);
  if (name == "reverse") {
    sequence items = items_of(subject);
    std::reverse(items.begin(), items.end());
    return subject.is<text>() ? value(join(items, text())) : value::list(std::move(items));
  }
  if (name == "items") {
    if (subject.is<undefined>()) return value::list({});
    const auto* d = subject.as<dict_value>();
    if (d == nullptr) throw failure("Can only get item pairs from a mapping.");
    return pair_list(*d->members);
  }
  if (name == "dictsort") return sorted_items(subject, a);
  if (name == "int") return to_integer(subject, a);
  if (name == "float") return to_float(subject, a);
  if (name == "abs") {
    if (const auto whole = subject.whole()) {
      if (*whole == INT64_MIN) throw failure("an integer overflows");
      return value::integer(std::abs(*whole));
    }
    if (const auto number = subject.number()) return value(std::abs(*number));
    throw failure("bad operand type for abs(): '" + subject.type_name() + "'");
  }
  if (name == "round") return rounded(subject, a);
  if (name == "indent") return indented(as_text(), a);
  if (name == "wordcount")
    return value::integer(static_cast<std::int64_t>(items_of(split(as_text(), {}, -1, false)).size()));
  if (name == "format") {
    return format_percent(as_text(), value::list(a.positional, true));
  }
  if (name == "attr") return runs.item(subject, a.get(0, "name"));
  return std::nullopt;
}

std::optional<bool> apply_test(std::string_view name, const value& v, arguments& a) {
  const value other = a.get(0, "other");
  if (name == "defined") return !v.is<undefined>();
  if (name == "undefined") return v.is<undefined>();
  if (name == "none") return v.is<none>();
  if (name == "string") return v.is<text>();
  if (name == "number") return v.number().has_value();
  if (name == "integer") return v.is<std::int64_t>();
  if (name == "float") return v.is<double>();
  if (name == "boolean") return v.is<bool>();
  if (name == "true") return v.is<bool>() && v.truthy();
  if (name == "false") return v.is<bool>() && !v.truthy();
  if (name == "mapping") return v.is<dict_value>();
  if (name == "iterable") return v.is<text>() || v.is<list_value>() || v.is<dict_value>() || v.is<undefined>();
  if (name == "sequence") return v.is<text>() || v.is<list_value>() || v.is<dict_value>() || v.is<undefined>();
  if (name == "callable") return v.is<function_value>();
  if (name == "equalto" || name == "eq" || name == "==" || name == "sameas") return equal(v, other);
  if (name == "ne" || name == "!=") return !equal(v, other);
  if (name == "gt" || name == "greaterthan" || name == ">") return compare(v, other) > 0;
  if (name == "ge" || name == ">=") return compare(v, other) >= 0;
  if (name == "lt" || name == "lessthan" || name == "<") return compare(v, other) < 0;
  if (name == "le" || name == "<=") return compare(v, other) <= 0;
  if (name == "in") return contains(other, v);
  if (name == "odd" || name == "even" || name == "divisibleby") {
    const auto whole = v.whole();
    const std::int64_t by = name == "divisibleby" ? other.whole().value_or(0) : 2;
    if (!whole || by == 0) throw failure("'" + std::string(name) + "' needs integers");
    return (by == -1 || *whole % by == 0) == (name != "odd");  // -1: the one quotient that overflows
  }
  if (name == "upper")
    return to_text(v).bytes() == ascii_case(to_text(v).bytes(), true) &&
           to_text(v).bytes() != ascii_case(to_text(v).bytes(), false);
  if (name == "lower")
    return to_text(v).bytes() == ascii_case(to_text(v).bytes(), false) &&
           to_text(v).bytes() != ascii_case(to_text(v).bytes(), true);
  return std::nullopt;
}

}  // namespace troupe::model::jinja
