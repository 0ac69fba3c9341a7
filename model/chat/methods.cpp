#include <algorithm>

#include "model/chat/filters.hpp"
#include "model/chat/library.hpp"
#include "model/chat/text_methods.hpp"

namespace troupe::model::jinja {
namespace {

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

}  // namespace

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

}  // namespace troupe::model::jinja
