#include "model/tokenizer/byte_alphabet.hpp"

#include <array>

#include "model/tokenizer/unicode.hpp"

namespace troupe::model {
namespace {

constexpr bool stands_for_itself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct alphabet {
  std::array<char32_t, 256> character{};
  std::array<std::int16_t, 0x144> byte{};  // by character; -1 outside the alphabet

  constexpr alphabet() {
    for (auto& b : byte) b = -1;
    char32_t next = 0x100;
    for (unsigned b = 0; b < 256; ++b) {
      character[b] = stands_for_itself(b) ? b : next++;
      byte[character[b]] = static_cast<std::int16_t>(b);
    }
  }
};

constexpr alphabet table;
static_assert(table.character[' '] == 0x120 && table.character[0xAD] == 0x143);

}  // namespace

char32_t byte_to_character(unsigned char byte) { return table.character[byte]; }

std::optional<unsigned char> character_to_byte(char32_t c) {
  if (c >= table.byte.size() || table.byte[c] < 0) return std::nullopt;
  return static_cast<unsigned char>(table.byte[c]);
}

std::string to_byte_alphabet(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const char b : bytes) unicode::append(out, byte_to_character(static_cast<unsigned char>(b)));
  return out;
}

std::optional<std::string> from_byte_alphabet(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const auto c = unicode::at(text, i);
    const auto byte = character_to_byte(c.value);
    if (!byte) return std::nullopt;
    out += static_cast<char>(*byte);
    i += c.length;
  }
  return out;
}

}  // namespace troupe::model
