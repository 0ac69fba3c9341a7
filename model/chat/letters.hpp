#pragma once

#include "model/chat/value.hpp"

/// Letters as Python's strings know them: case mapping and classes of characters after the Unicode Character Database
/// (The Unicode Standard, 3.13 and SpecialCasing.txt), with every byte still marked as its author's.
namespace troupe::model::jinja {

text upper(const text& t);
text lower(const text& t);
text fold(const text& t);         ///< casefold()
text capitalize(const text& t);   ///< First character in title case, the others in lower case.
text title(const text& t);        ///< str.title(): a word is a run of cased characters.
text title_words(const text& t);  ///< jinja2's filter `title`: words begin after white space and -({[<.
text swap_case(const text& t);

bool is_space(char32_t c);
bool is_line_end(char32_t c);
/// Whether `t` is not empty and all its characters are of the class that isalpha, isdigit, ... ask for.
bool all_of_class(const text& t, std::string_view method);
/// isupper, islower, istitle.
bool has_case(const text& t, std::string_view method);

/// The character that begins at byte `at`, which must be the first of a well-formed one.
char32_t character_at(std::string_view bytes, std::size_t at);
std::size_t character_length(char lead);
std::string encoded(char32_t c);

}  // namespace troupe::model::jinja
