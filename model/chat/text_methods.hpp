#pragma once

#include "model/chat/value.hpp"

/// The methods of Python's str, and the two ways in which it formats. Each keeps the mark of who wrote which byte.
namespace troupe::model::jinja {

bool is_text_method(std::string_view name);
/// `name` must be a text method. A list that a method makes holds parts of `t`.
value text_method(const text& t, std::string_view name, arguments& a);

value split(const text& t, const value& separator, std::int64_t most, bool from_right);
text join(const sequence& items, const text& separator);
text replace_all(const text& subject, const text& from, const text& to, std::int64_t count);
/// Without `characters`: white space.
text trimmed(const text& subject, const std::optional<std::string>& characters, bool left, bool right);
std::optional<std::string> characters_of(const value& v);  ///< Nothing for what is no text.
/// `width` characters at least; `where` is '<', '>' or '^' (jinja2 and Python put the odd one differently:
/// `left_heavy`).
text padded(const text& t, std::int64_t width, char where, char fill = ' ', bool left_heavy = false);
text text_of(const value& v, std::string_view what);  ///< Fails, naming `what`, for all but text.

text format_percent(const text& pattern, const value& with);     ///< pattern % with
text format_braces(const text& pattern, const arguments& with);  ///< pattern.format(...)

}  // namespace troupe::model::jinja
