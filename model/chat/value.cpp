#include "model/chat/value.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <charconv>
#include <cmath>

namespace troupe::model::jinja {
namespace {

constexpr std::size_t max_nesting = 200;

std::size_t lead_length(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

char32_t decode(std::string_view bytes, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(bytes[at + i])); };
  switch (lead_length(bytes[at])) {
    case 1:
      return byte(0);
    case 2:
      return (byte(0) & 0x1F) << 6U | (byte(1) & 0x3F);
    case 3:
      return (byte(0) & 0x0F) << 12U | (byte(1) & 0x3F) << 6U | (byte(2) & 0x3F);
    default:
      return (byte(0) & 0x07) << 18U | (byte(1) & 0x3F) << 12U | (byte(2) & 0x3F) << 6U | (byte(3) & 0x3F);
  }
}

std::string hex4(std::uint32_t code) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out = "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += digits[code >> static_cast<unsigned>(shift) & 0xFU];
  return out;
}

void append_quoted_json(const text& t, bool ascii, text& out) {
  out += text("\"");
  std::size_t plain = 0;  // the beginning of what needs no escape
  const std::string& bytes = t.bytes();
  for (std::size_t at = 0; at < bytes.size(); at += lead_length(bytes[at])) {
    std::string escape;
    const auto byte = static_cast<unsigned char>(bytes[at]);
    switch (byte) {
      case '"':
        escape = "\\\"";
        break;
      case '\\':
        escape = "\\\\";
        break;
      case '\n':
        escape = "\\n";
        break;
      case '\r':
        escape = "\\r";
        break;
      case '\t':
        escape = "\\t";
        break;
      case '\b':
        escape = "\\b";
        break;
      case '\f':
        escape = "\\f";
        break;
      default:
        if (byte < 0x20) escape = hex4(byte);
        if (ascii && byte >= 0x80) {
          const char32_t c = decode(bytes, at);
          escape =
              c < 0x10000 ? hex4(c) : hex4(0xD800 + ((c - 0x10000) >> 10U)) + hex4(0xDC00 + ((c - 0x10000) & 0x3FFU));
        }
    }
    if (escape.empty()) continue;
    out += t.substr(plain, at - plain);
    out += text(escape, t.from_user(at));
    plain = at + lead_length(bytes[at]);
  }
  out += t.substr(plain);
  out += text("\"");
}

/// Single quotes, unless the text has some and no double ones.
text repr_of_text(const text& t) {
  const std::string& bytes = t.bytes();
  const bool twice = bytes.find('\'') != std::string::npos && bytes.find('"') == std::string::npos;
  const char quote = twice ? '"' : '\'';
  std::string out(1, quote);
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    const char c = bytes[at];
    const auto byte = static_cast<unsigned char>(c);
    if (c == quote || c == '\\')
      out += {'\\', c};
    else if (c == '\n')
      out += "\\n";
    else if (c == '\r')
      out += "\\r";
    else if (c == '\t')
      out += "\\t";
    else if (byte < 0x20 || byte == 0x7F)
      out += "\\x" + hex4(byte).substr(4);
    else
      out += c;
  }
  return text(out + quote, t.any_user());
}

}  // namespace

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
    const auto& mine = d->members->members;
    const auto& others = *b.as<dict_value>()->members;
    return mine.size() == others.members.size() && std::all_of(mine.begin(), mine.end(), [&](const auto& m) {
             const value* other = others.find(m.first.bytes());
             return other != nullptr && equal(m.second, *other);
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

std::string float_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, number, std::chars_format::scientific).ptr;
  const std::string_view shortest(buffer, static_cast<std::size_t>(end - buffer));
  const auto e = shortest.find('e');
  const int exponent = std::stoi(std::string(shortest.substr(e + 1)));
  std::string digits;
  for (const char c : shortest.substr(0, e))
    if (c >= '0' && c <= '9') digits += c;
  const std::string sign = number < 0 || std::signbit(number) ? "-" : "";
  const auto count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    std::string out = sign + digits.substr(0, 1);
    if (count > 1) out += "." + digits.substr(1);
    const std::string power = std::to_string(std::abs(exponent));
    return out + (exponent < 0 ? "e-" : "e+") + (power.size() < 2 ? "0" : "") + power;
  }
  if (exponent < 0) return sign + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  if (count <= exponent + 1)
    return sign + digits + std::string(static_cast<std::size_t>(exponent + 1 - count), '0') + ".0";
  return sign + digits.substr(0, static_cast<std::size_t>(exponent) + 1) + "." +
         digits.substr(static_cast<std::size_t>(exponent) + 1);
}

text to_text(const value& v) {
  if (const auto* t = v.as<text>()) return *t;
  if (v.is<undefined>()) return {};
  return repr(v);
}

text repr(const value& v) {
  if (v.is<undefined>()) return text("Undefined");
  if (v.is<none>()) return text("None");
  if (const auto* b = v.as<bool>()) return text(*b ? "True" : "False");
  if (const auto* i = v.as<std::int64_t>()) return text(std::to_string(*i));
  if (const auto* d = v.as<double>()) return text(float_text(*d));
  if (const auto* t = v.as<text>()) return repr_of_text(*t);
  if (const auto* l = v.as<list_value>()) {
    if (l->shown.ends_with(')')) return text(l->shown);
    text out(l->shown.empty() ? "" : l->shown + "(");
    out += text(l->tuple ? "(" : "[");
    for (std::size_t i = 0; i < l->items->size(); ++i) {
      if (i != 0) out += text(", ");
      out += repr((*l->items)[i]);
    }
    if (l->tuple && l->items->size() == 1) out += text(",");
    out += text(l->tuple ? ")" : "]");
    if (!l->shown.empty()) out += text(")");
    return out;
  }
  if (const auto* d = v.as<dict_value>()) {
    if (d->is_namespace) return text("<Namespace>");
    text out("{");
    bool first = true;
    for (const auto& [key, what] : d->members->members) {
      if (!first) out += text(", ");
      first = false;
      out += repr_of_text(key);
      out += text(": ");
      out += repr(what);
    }
    out += text("}");
    return out;
  }
  const auto* f = v.as<function_value>();
  return text(f->macro ? "<Macro '" + f->name + "'>" : "<function " + f->name + ">");
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
      const std::size_t length = lead_length(t->bytes()[at]);
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

text to_json(const value& v, const json_style& style, std::size_t level) {
  if (level > max_nesting) throw failure("tojson: the value is nested too deeply");
  const auto new_line = [&](std::size_t depth) {
    return style.indent ? text("\n" + std::string(depth * *style.indent, ' ')) : text();
  };
  const std::string separator = style.indent && style.item_separator == ", " ? "," : style.item_separator;
  if (v.is<none>()) return text("null");
  if (const auto* b = v.as<bool>()) return text(*b ? "true" : "false");
  if (const auto* d = v.as<double>())
    return text(std::isnan(*d) ? "NaN" : std::isinf(*d) ? (*d < 0 ? "-Infinity" : "Infinity") : float_text(*d));
  if (v.is<std::int64_t>()) return repr(v);
  text out;
  if (const auto* t = v.as<text>()) {
    append_quoted_json(*t, style.ascii, out);
    return out;
  }
  if (const auto* l = v.as<list_value>()) {
    if (!l->shown.empty())
      throw failure("Object of type " + l->shown.substr(0, l->shown.find('(')) + " is not JSON serializable");
    if (l->items->empty()) return text("[]");
    out += text("[");
    for (std::size_t i = 0; i < l->items->size(); ++i) {
      if (i != 0) out += text(separator);
      out += new_line(level + 1);
      out += to_json((*l->items)[i], style, level + 1);
    }
    out += new_line(level);
    out += text("]");
    return out;
  }
  const auto* d = v.as<dict_value>();
  if (d == nullptr || d->is_namespace) throw failure("Object of type " + v.type_name() + " is not JSON serializable");
  if (d->members->members.empty()) return text("{}");
  auto members = d->members->members;
  if (style.sort_keys)
    std::stable_sort(members.begin(), members.end(),
                     [](const auto& a, const auto& b) { return a.first.bytes() < b.first.bytes(); });
  out += text("{");
  bool first = true;
  for (const auto& [key, what] : members) {
    if (!first) out += text(separator);
    first = false;
    out += new_line(level + 1);
    append_quoted_json(key, style.ascii, out);
    out += text(style.key_separator);
    out += to_json(what, style, level + 1);
  }
  out += new_line(level);
  out += text("}");
  return out;
}

value from_json(const boost::json::value& json, bool from_user) {
  switch (json.kind()) {
    case boost::json::kind::null:
      return none{};
    case boost::json::kind::bool_:
      return json.get_bool();
    case boost::json::kind::int64:
      return value::integer(json.get_int64());
    case boost::json::kind::uint64:
      return json.get_uint64() <= INT64_MAX ? value::integer(static_cast<std::int64_t>(json.get_uint64()))
                                            : value(static_cast<double>(json.get_uint64()));
    case boost::json::kind::double_:
      return json.get_double();
    case boost::json::kind::string:
      return text({json.get_string().data(), json.get_string().size()}, from_user);
    case boost::json::kind::array: {
      sequence items;
      for (const auto& item : json.get_array()) items.push_back(from_json(item, from_user));
      return value::list(std::move(items));
    }
    case boost::json::kind::object:
      break;
  }
  dictionary members;
  for (const auto& member : json.get_object())
    members.members.emplace_back(text({member.key().data(), member.key().size()}, from_user),
                                 from_json(member.value(), from_user));
  return value::dict(std::move(members));
}

std::size_t character_count(std::string_view bytes) {
  return static_cast<std::size_t>(std::count_if(
      bytes.begin(), bytes.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::size_t character_offset(std::string_view bytes, std::size_t index) {
  std::size_t at = 0;
  while (index > 0 && at < bytes.size()) {
    at += lead_length(bytes[at]);
    --index;
  }
  return std::min(at, bytes.size());
}

}  // namespace troupe::model::jinja
