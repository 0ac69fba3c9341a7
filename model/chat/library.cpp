#include "model/chat/library.hpp"

#include <algorithm>

#include "model/chat/filters.hpp"
#include "model/chat/letters.hpp"
#include "model/chat/text_methods.hpp"

namespace troupe::model::jinja {
namespace {

value named_values(const arguments& a) {
  dictionary out;
  for (const auto& [key, what] : a.named) out.set(text(key), what);
  return value::dict(std::move(out));
}

}  // namespace

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
  if (name == "abs") return absolute(subject);
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
  return std::ranges::find(names, name) != std::end(names);
}

bool is_test(std::string_view name) {
  static constexpr std::string_view names[] = {
      "!=",       "<",           "<=",          "==",      ">",       ">=",        "boolean",  "callable",
      "defined",  "divisibleby", "eq",          "equalto", "escaped", "even",      "false",    "filter",
      "float",    "ge",          "greaterthan", "gt",      "in",      "integer",   "iterable", "le",
      "lessthan", "lower",       "lt",          "mapping", "ne",      "none",      "number",   "odd",
      "sameas",   "sequence",    "string",      "test",    "true",    "undefined", "upper"};
  return std::ranges::find(names, name) != std::end(names);
}

}  // namespace troupe::model::jinja
