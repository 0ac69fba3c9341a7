#include "model/chat/value.hpp"

#include <algorithm>

#include "model/chat/letters.hpp"

namespace troupe::model::jinja {

void text::append(std::string_view bytes, bool from_user) {
  if (bytes.size() > max_bytes || bytes_.size() > max_bytes - bytes.size())
    throw failure("the template makes too much text");
  bytes_ += bytes;
  users_.append(bytes.size(), from_user ? '\1' : '\0');
}

text& text::operator+=(const text& more) {
  if (more.size() > max_bytes || size() > max_bytes - more.size()) throw failure("the template makes too much text");
  bytes_ += more.bytes_;
  users_ += more.users_;
  return *this;
}

text text::substr(std::size_t begin, std::size_t length) const {
  text out;
  out.bytes_ = bytes_.substr(begin, length);
  out.users_ = users_.substr(begin, length);
  return out;
}

text text::with_bytes(std::string bytes) const {
  if (bytes.size() != bytes_.size()) return text(bytes, any_user());
  text out;
  out.bytes_ = std::move(bytes);
  out.users_ = users_;
  return out;
}

const value* dictionary::find(std::string_view key) const {
  for (const auto& [name, what] : members)
    if (name.bytes() == key) return &what;
  return nullptr;
}

void dictionary::set(const text& key, value what) {
  for (auto& [name, present] : members)
    if (name.bytes() == key.bytes()) {
      present = std::move(what);
      return;
    }
  members.emplace_back(key, std::move(what));
}

void extent::hold(const value& inside) {
  extent of;
  if (const auto* l = inside.as<list_value>()) of = l->size;
  if (const auto* d = inside.as<dict_value>()) of = d->size;
  nesting = std::max(nesting, of.nesting + 1);
  values += of.values;
  if (nesting > most_nesting || values > most_values)
    throw failure("a value of the template is nested too deeply or holds too much");
}

value value::list(sequence items, bool tuple) {
  list_value out{std::make_shared<sequence>(std::move(items)), tuple};
  for (const value& item : *out.items) out.size.hold(item);
  return out;
}

value value::dict(dictionary members, bool is_namespace) {
  dict_value out{std::make_shared<dictionary>(std::move(members)), is_namespace};
  for (const auto& [key, what] : out.members->members) out.size.hold(what);
  return out;
}

bool value::truthy() const {
  if (const auto* b = as<bool>()) return *b;
  if (const auto* i = as<std::int64_t>()) return *i != 0;
  if (const auto* d = as<double>()) return *d != 0.0;
  if (const auto* t = as<text>()) return !t->empty();
  if (const auto* l = as<list_value>()) return !l->items->empty();
  if (const auto* d = as<dict_value>()) return d->is_namespace || !d->members->members.empty();
  return is<function_value>();
}

std::optional<double> value::number() const {
  if (const auto* d = as<double>()) return *d;
  if (const auto i = whole()) return static_cast<double>(*i);
  return std::nullopt;
}

std::optional<std::int64_t> value::whole() const {
  if (const auto* i = as<std::int64_t>()) return *i;
  if (const auto* b = as<bool>()) return *b ? 1 : 0;
  return std::nullopt;
}

std::string value::type_name() const {
  constexpr const char* names[] = {"Undefined", "NoneType", "bool", "int", "float", "str", "list", "dict", "function"};
  return names[data_.index()];
}

value arguments::get(std::size_t index, std::string_view name) const {
  if (index < positional.size()) return positional[index];
  for (const auto& [key, what] : named)
    if (key == name) return what;
  return undefined{std::string(name)};
}

bool arguments::has(std::size_t index, std::string_view name) const {
  if (index < positional.size()) return true;
  return std::any_of(named.begin(), named.end(), [&](const auto& n) { return n.first == name; });
}

bool equal(const value& a, const value& b) {
  if (const auto x = a.number(), y = b.number(); x && y) {
    const auto i = a.whole();
    const auto j = b.whole();
    return i && j ? *i == *j : *x == *y;
  }
  if (a.data().index() != b.data().index()) return false;
  if (const auto* t = a.as<text>()) return t->bytes() == b.as<text>()->bytes();
  if (const auto* l = a.as<list_value>()) {
    const auto* other = b.as<list_value>();
    return l->tuple == other->tuple && l->items->size() == other->items->size() &&
           std::equal(l->items->begin(), l->items->end(), other->items->begin(), equal);
  }
  if (const auto* d = a.as<dict_value>()) {
    const auto* other = b.as<dict_value>();
    if (d->is_namespace || other->is_namespace) return d->members == other->members;
    const auto& mine = d->members->members;
    const auto& others = *other->members;
    return mine.size() == others.members.size() && std::all_of(mine.begin(), mine.end(), [&](const auto& m) {
             const value* same = others.find(m.first.bytes());
             return same != nullptr && equal(m.second, *same);
           });
  }
  if (const auto* f = a.as<function_value>()) return f->call == b.as<function_value>()->call;
  return true;  // both undefined, or both none
}

int compare(const value& a, const value& b) {
  if (const auto x = a.number(), y = b.number(); x && y) return *x < *y ? -1 : *x > *y ? 1 : 0;
  const auto* t = a.as<text>();
  const auto* u = b.as<text>();
  if (t != nullptr && u != nullptr) {
    const int order = t->bytes().compare(u->bytes());
    return order < 0 ? -1 : order > 0 ? 1 : 0;
  }
  const auto* l = a.as<list_value>();
  const auto* m = b.as<list_value>();
  if (l == nullptr || m == nullptr) throw failure("'" + a.type_name() + "' and '" + b.type_name() + "' have no order");
  for (std::size_t i = 0; i < l->items->size() && i < m->items->size(); ++i)
    if (!equal((*l->items)[i], (*m->items)[i])) return compare((*l->items)[i], (*m->items)[i]);
  return l->items->size() < m->items->size() ? -1 : l->items->size() > m->items->size() ? 1 : 0;
}

bool contains(const value& container, const value& item) {
  if (const auto* t = container.as<text>()) {
    const auto* part = item.as<text>();
    if (part == nullptr) throw failure("'in <string>' requires string as left operand, not " + item.type_name());
    return t->bytes().find(part->bytes()) != std::string::npos;
  }
  if (const auto* d = container.as<dict_value>()) {
    const auto* key = item.as<text>();
    return key != nullptr && d->members->find(key->bytes()) != nullptr;
  }
  if (container.is<undefined>()) return false;
  const auto* l = container.as<list_value>();
  if (l == nullptr) throw failure("argument of type '" + container.type_name() + "' is not iterable");
  return std::any_of(l->items->begin(), l->items->end(), [&](const value& one) { return equal(one, item); });
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

sequence items_of(const value& v) {
  if (const auto* l = v.as<list_value>()) return *l->items;
  sequence out;
  if (const auto* d = v.as<dict_value>(); d != nullptr && !d->is_namespace) {
    for (const auto& member : d->members->members) out.emplace_back(member.first);
    return out;
  }
  if (const auto* t = v.as<text>()) {
    for (std::size_t at = 0; at < t->size();) {
      const std::size_t length = character_length(t->bytes()[at]);
      out.emplace_back(t->substr(at, length));
      at += length;
    }
    return out;
  }
  if (v.is<undefined>()) return out;
  throw failure("'" + v.type_name() + "' object is not iterable");
}

std::size_t length_of(const value& v) {
  if (const auto* t = v.as<text>()) return character_count(t->bytes());
  if (const auto* l = v.as<list_value>()) return l->items->size();
  if (const auto* d = v.as<dict_value>(); d != nullptr && !d->is_namespace) return d->members->members.size();
  if (v.is<undefined>()) return 0;
  throw failure("object of type '" + v.type_name() + "' has no len()");
}

std::size_t character_count(std::string_view bytes) {
  return static_cast<std::size_t>(std::count_if(
      bytes.begin(), bytes.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::size_t character_offset(std::string_view bytes, std::size_t index) {
  std::size_t at = 0;
  while (index > 0 && at < bytes.size()) {
    at += character_length(bytes[at]);
    --index;
  }
  return std::min(at, bytes.size());
}

}  // namespace troupe::model::jinja
