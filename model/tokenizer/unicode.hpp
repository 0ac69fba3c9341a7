#pragma once

#include <cstddef>
#include <string>
#include <string_view>

/// What tokenizers need to know about Unicode: walking UTF-8, character classes and normalization forms. All texts are
/// valid UTF-8; every function is pure and linear in the text.
namespace troupe::model::unicode {

struct character {
  char32_t value = 0;
  std::size_t length = 0;  ///< Bytes in UTF-8.
};

/// The character that begins at byte `at` of valid UTF-8.
inline character at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(text[at + i])); };
  const char32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  if (first < 0xE0) return {(first & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  if (first < 0xF0) return {(first & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
  return {(first & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F), 4};
}

/// The first byte of the character that ends before byte `end`.
inline std::size_t before(std::string_view text, std::size_t end) {
  do --end;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80);
  return end;
}

void append(std::string& out, char32_t c);

bool is_ascii(std::string_view text);
bool is_whitespace(char32_t c);   ///< White_Space.
bool is_numeric(char32_t c);      ///< Nd, Nl, No.
bool is_punctuation(char32_t c);  ///< ASCII punctuation and every P category.
bool is_word(char32_t c);         ///< UTS #18 annex C: alphabetic, marks, decimal digits, connectors, joiners.

/// Whether a character newer than PCRE2's tables (Unicode 14) occurs.
bool has_added_character(std::string_view text);

/// Default lower case of each character by itself (SpecialCasing's one unconditional entry included).
std::string lowercase(std::string_view text);

enum class form { nfc, nfd, nfkc, nfkd };
/// UAX #15. Runs of combining marks are sorted in O(n log n), however long.
std::string normalize(std::string_view text, form to);

}  // namespace troupe::model::unicode
