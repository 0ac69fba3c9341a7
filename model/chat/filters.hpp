#pragma once

#include <string_view>

#include "model/chat/library.hpp"
#include "model/chat/value.hpp"

/// jinja2's filters that take more than a line, by the kind of their subject; `apply_filter` calls them by name. Each
/// takes the filter's arguments as jinja2 names and orders them, and fails as Python would.
namespace troupe::model::jinja {

// Of sequences and dictionaries (list_filters.cpp).

/// What `attribute` ("a.b", an index, or absent: the item itself) names in an item.
value by_attribute(const value& item, const value& attribute, const host& runs);
value pair_list(const dictionary& d);
value sorted(const value& subject, const arguments& a, const host& runs);
value sorted_items(const value& subject, const arguments& a);
/// select, reject, selectattr, rejectattr
value selected(std::string_view name, const value& subject, const arguments& a, const host& runs);
value mapped(const value& subject, const arguments& a, const host& runs);
value unique(const value& subject, const arguments& a, const host& runs);
value extreme(const value& subject, const arguments& a, const host& runs, bool highest);
value summed(const value& subject, const arguments& a, const host& runs);
value batched(const value& subject, const arguments& a);
/// jinja2's slice: so many columns, the first of them one longer where it does not divide.
value sliced(const value& subject, const arguments& a);
value grouped(const value& subject, const arguments& a, const host& runs);

// Of numbers, or what can be read as one (number_filters.cpp).

value absolute(const value& subject);
value rounded(const value& subject, const arguments& a);
value to_integer(const value& subject, const arguments& a);
value to_float(const value& subject, const arguments& a);
text file_size(const value& subject, const arguments& a);

// Of text (text_filters.cpp).

text indented(const text& t, const arguments& a);
text escaped(const text& t);
value json_filter(const value& subject, const arguments& a);
text url_encoded(const text& t);
text truncated(const text& t, const arguments& a);
/// Comments and tags go, white space becomes single blanks.
text without_tags(const text& t);

}  // namespace troupe::model::jinja
