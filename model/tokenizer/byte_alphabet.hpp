#pragma once

#include <optional>
#include <string>
#include <string_view>

/// GPT-2's byte alphabet: every byte has a printable character, so that a byte-level vocabulary can be written as text
/// (" the" is "Ġthe"). Printable Latin-1 bytes stand for themselves; the other 68 follow U+00FF in order.
namespace troupe::model {

/// The character of a byte.
char32_t byte_to_character(unsigned char byte);
/// The byte of a character, or nothing outside the alphabet.
std::optional<unsigned char> character_to_byte(char32_t c);
/// All bytes of `bytes` as their characters.
std::string to_byte_alphabet(std::string_view bytes);
/// Back again; nothing if any character is outside the alphabet.
std::optional<std::string> from_byte_alphabet(std::string_view text);

}  // namespace troupe::model
