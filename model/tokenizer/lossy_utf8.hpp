#pragma once

#include <string>
#include <string_view>

/// UTF-8 that arrives in pieces. Ill-formed bytes become U+FFFD, one for each maximal part of a character
/// (Unicode 15.0, section 3.9, "U+FFFD Substitution of Maximal Subparts"), as Rust and the web do it.
namespace troupe::model {

/// Moves everything that is decided from `bytes` to `text`; a character that may still be completed stays.
void take_utf8(std::string& bytes, std::string& text);
/// The same, and what is left is an incomplete character.
void finish_utf8(std::string& bytes, std::string& text);
bool is_utf8(std::string_view bytes);

}  // namespace troupe::model
