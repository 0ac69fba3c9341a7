#include "model/chat/library.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>

#include "model/chat/letters.hpp"
#include "model/chat/text_methods.hpp"

namespace troupe::model::jinja {
namespace {

value pair_list(const dictionary& d) {
  sequence out;
  for (const auto& [key, what] : d.members) out.push_back(value::list({value(key), what}, true));
  return value::list(std::move(out));
}

value shown_as(const char* name, const value& list) {
  list_value out = *list.as<list_value>();
  out.shown = name;
  return out;
}

value dict_method(const dict_value& d, std::string_view name, arguments& a) {
  const dictionary& members = *d.members;
  if (name == "items") return shown_as("dict_items", pair_list(members));
  if (name == "copy") return value::dict(members);
  if (name == "get") {
    const value wanted = a.get(0, "key");
    if (const auto* k = wanted.as<text>())
      if (const value* found = members.find(k->bytes())) return *found;
    return a.has(1, "default") ? a.get(1, "default") : value(none{});
  }
  sequence out;
  for (const auto& [key, what] : members.members) out.push_back(name == "keys" ? value(key) : what);
  return shown_as(name == "keys" ? "dict_keys" : "dict_values", value::list(std::move(out)));
}

constexpr std::string_view dict_methods[] = {"items", "keys", "values", "get", "copy"};
/// What the sandbox of the reference does not let a template call, as it changes its object.
constexpr std::string_view changing_dict_methods[] = {"clear", "pop", "popitem", "setdefault", "update"};
constexpr std::string_view changing_list_methods[] = {"append", "clear",  "extend",  "insert",
                                                      "pop",    "remove", "reverse", "sort"};

bool listed(const auto& list, std::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

value refusal(const std::string& type, std::string_view name) {
  return value::function(std::string(name), [type, called = std::string(name)](arguments&) -> value {
    throw failure(type + "." + called + " changes its object, which a chat template must not");
  });
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

value named_values(const arguments& a) {
  dictionary out;
  for (const auto& [key, what] : a.named) out.set(text(key), what);
  return value::dict(std::move(out));
}

/// jinja2's slice: so many columns, the first of them one longer where it does not divide.
value sliced(const value& subject, const arguments& a) {
  const sequence items = items_of(subject);
  const std::int64_t columns = a.get(0, "slices").whole().value_or(0);
  if (columns < 1 || columns > 100'000) throw failure("slice needs a number of slices of at least 1");
  const auto count = static_cast<std::size_t>(columns);
  const std::size_t each = items.size() / count;
  const std::size_t longer = items.size() % count;
  sequence out;
  std::size_t at = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t size = each + (i < longer ? 1 : 0);
    sequence column(items.begin() + static_cast<std::ptrdiff_t>(at),
                    items.begin() + static_cast<std::ptrdiff_t>(at + size));
    if (a.has(1, "fill_with") && i >= longer && longer != 0) column.push_back(a.get(1, "fill_with"));
    out.push_back(value::list(std::move(column)));
    at += size;
  }
  return value::list(std::move(out));
}

text url_encoded(const text& t) {
  text out;
  for (std::size_t i = 0; i < t.size(); ++i) {
    const char c = t.bytes()[i];
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("_.-~/").find(c) != std::string_view::npos;
    constexpr std::string_view digits = "0123456789ABCDEF";
    const auto byte = static_cast<unsigned char>(c);
    out.append(plain ? std::string(1, c) : std::string{'%', digits[byte >> 4U], digits[byte & 15U]}, t.from_user(i));
  }
  return out;
}

text truncated(const text& t, const arguments& a) {
  const std::int64_t length = a.get(0, "length").whole().value_or(255);
  const text end = a.has(2, "end") ? to_text(a.get(2, "end")) : text("...");
  const std::int64_t leeway = a.get(3, "leeway").whole().value_or(5);
  const auto ending = static_cast<std::int64_t>(character_count(end.bytes()));
  if (length < ending || leeway < 0) throw failure("truncate: the length or the leeway is too small");
  const auto count = static_cast<std::int64_t>(character_count(t.bytes()));
  if (count <= length || count - length <= leeway) return t;
  text out = t.substr(0, character_offset(t.bytes(), static_cast<std::size_t>(length - ending)));
  if (!a.get(1, "killwords").truthy()) out = out.substr(0, out.bytes().rfind(' '));
  out += end;
  return out;
}

/// Comments and tags go, white space becomes single blanks.
text without_tags(const text& t) {
  text bare;
  const std::string& bytes = t.bytes();
  for (std::size_t at = 0; at < bytes.size();) {
    const bool comment = bytes.compare(at, 4, "<!--") == 0;
    const auto end = bytes[at] == '<' ? bytes.find(comment ? "-->" : ">", at) : std::string::npos;
    if (end == std::string::npos)
      bare += t.substr(at++, 1);
    else
      at = end + (comment ? 3 : 1);
  }
  return join(items_of(split(bare, {}, -1, false)), text(" "));
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

std::optional<value> method_of(const value& object, std::string_view name) {
  if (const auto* t = object.as<text>()) {
    if (!is_text_method(name)) return std::nullopt;
    return value::function(std::string(name), [subject = *t, called = std::string(name)](arguments& a) {
      return text_method(subject, called, a);
    });
  }
  if (const auto* d = object.as<dict_value>(); d != nullptr && !d->is_namespace) {
    if (listed(changing_dict_methods, name)) return refusal("dict", name);
    if (!listed(dict_methods, name)) return std::nullopt;
    return value::function(std::string(name), [subject = *d, called = std::string(name)](arguments& a) {
      return dict_method(subject, called, a);
    });
  }
  if (const auto* l = object.as<list_value>()) {
    if (listed(changing_list_methods, name)) return refusal("list", name);
    if (name != "index" && name != "count" && name != "copy") return std::nullopt;
    return value::function(std::string(name), [items = l->items, called = std::string(name)](arguments& a) -> value {
      if (called == "copy") return value::list(*items);
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
  if (name == "title") return title_words(as_text());
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
    return format_percent(as_text(), a.named.empty() ? value::list(a.positional, true) : named_values(a));
  }
  if (name == "slice") return sliced(subject, a);
  if (name == "urlencode") return url_encoded(as_text());
  if (name == "truncate") return truncated(as_text(), a);
  if (name == "striptags") return without_tags(as_text());
  if (name == "center") return padded(as_text(), a.get(0, "width").whole().value_or(80), '^', ' ', true);
  if (name == "pprint") return repr(subject);
  if (name == "filesizeformat") return file_size(subject, a);
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
  if (name == "equalto" || name == "eq" || name == "==") return equal(v, other);
  if (name == "sameas") return v.data().index() == other.data().index() && equal(v, other);
  if (name == "escaped") return false;
  if (name == "filter" || name == "test") {
    const std::string wanted = to_text(v).bytes();
    return name == "filter" ? is_filter(wanted) : is_test(wanted);
  }
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
  if (name == "upper" || name == "lower") return has_case(to_text(v), name == "upper" ? "isupper" : "islower");
  return std::nullopt;
}

bool is_filter(std::string_view name) {
  static constexpr std::string_view names[] = {
      "abs",    "attr",       "batch",       "capitalize", "center",   "count",
      "d",      "default",    "dictsort",    "e",          "escape",   "filesizeformat",
      "first",  "float",      "forceescape", "format",     "groupby",  "indent",
      "int",    "items",      "join",        "last",       "length",   "list",
      "lower",  "map",        "max",         "min",        "pprint",   "random",
      "reject", "rejectattr", "replace",     "reverse",    "round",    "safe",
      "select", "selectattr", "slice",       "sort",       "string",   "striptags",
      "sum",    "title",      "tojson",      "trim",       "truncate", "unique",
      "upper",  "urlencode",  "urlize",      "wordcount",  "wordwrap", "xmlattr"};
  return listed(names, name);
}

bool is_test(std::string_view name) {
  static constexpr std::string_view names[] = {
      "!=",       "<",           "<=",          "==",      ">",       ">=",        "boolean",  "callable",
      "defined",  "divisibleby", "eq",          "equalto", "escaped", "even",      "false",    "filter",
      "float",    "ge",          "greaterthan", "gt",      "in",      "integer",   "iterable", "le",
      "lessthan", "lower",       "lt",          "mapping", "ne",      "none",      "number",   "odd",
      "sameas",   "sequence",    "string",      "test",    "true",    "undefined", "upper"};
  return listed(names, name);
}

}  // namespace troupe::model::jinja
