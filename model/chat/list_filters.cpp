#include <algorithm>

#include "model/chat/filters.hpp"
#include "model/chat/letters.hpp"
#include "model/chat/text_methods.hpp"

namespace troupe::model::jinja {
namespace {

constexpr std::int64_t max_parts = 100'000;  ///< That a filter makes of its own accord.

value folded(const value& v, bool case_sensitive) {
  const auto* t = v.as<text>();
  return t == nullptr || case_sensitive ? v : value(lower(*t));
}

}  // namespace

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

value sorted(const value& subject, const arguments& a, const host& runs) {
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

value pair_list(const dictionary& d) {
  sequence out;
  for (const auto& [key, what] : d.members) out.push_back(value::list({value(key), what}, true));
  return value::list(std::move(out));
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
    if (a.has(1, "fill_with")) {
      if (size > max_parts) throw failure("batch fills rows of at most " + std::to_string(max_parts));
      row.resize(static_cast<std::size_t>(size), a.get(1, "fill_with"));
    }
    out.push_back(value::list(std::move(row)));
  }
  return value::list(std::move(out));
}

value sliced(const value& subject, const arguments& a) {
  const sequence items = items_of(subject);
  const std::int64_t columns = a.get(0, "slices").whole().value_or(0);
  if (columns < 1 || columns > max_parts) throw failure("slice needs a number of slices of at least 1");
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

value grouped(const value& subject, const arguments& a, const host& runs) {
  arguments order;
  order.named = {{"attribute", a.get(0, "attribute")}};
  std::vector<std::pair<value, sequence>> groups;
  for (value& item : items_of(sorted(subject, order, runs))) {
    value key = by_attribute(item, a.get(0, "attribute"), runs);
    if (groups.empty() || !equal(groups.back().first, key)) groups.emplace_back(std::move(key), sequence{});
    groups.back().second.push_back(std::move(item));
  }
  sequence out;
  for (auto& [key, items] : groups) out.push_back(value::list({std::move(key), value::list(std::move(items))}, true));
  return value::list(std::move(out));
}

}  // namespace troupe::model::jinja
