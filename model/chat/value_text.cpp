#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <charconv>
#include <cmath>

#include "model/chat/letters.hpp"
#include "model/chat/value.hpp"

namespace troupe::model::jinja {
namespace {

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
  for (std::size_t at = 0; at < bytes.size(); at += character_length(bytes[at])) {
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
          const char32_t c = character_at(bytes, at);
          escape =
              c < 0x10000 ? hex4(c) : hex4(0xD800 + ((c - 0x10000) >> 10U)) + hex4(0xDC00 + ((c - 0x10000) & 0x3FFU));
        }
    }
    if (escape.empty()) continue;
    out += t.substr(plain, at - plain);
    out += text(escape, t.from_user(at));
    plain = at + character_length(bytes[at]);
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

text to_json(const value& v, const json_style& style, std::size_t level) {
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

}  // namespace troupe::model::jinja
