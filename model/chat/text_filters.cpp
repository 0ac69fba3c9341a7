#include <algorithm>

#include "model/chat/filters.hpp"
#include "model/chat/text_methods.hpp"

namespace troupe::model::jinja {
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

}  // namespace troupe::model::jinja
