#include "model/tokenizer/lossy_utf8.hpp"

#include "base/json/utf8.hpp"

namespace troupe::model {
namespace {

struct sequence {
  std::size_t length = 1;  ///< Bytes that belong together: a character, or the maximal part of one.
  bool valid = false;
  bool open = false;  ///< More bytes could complete it.
};

/// What begins at the front of `bytes` (Unicode 15.0, table 3-7).
sequence first_sequence(std::string_view bytes) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {1, true, false};
  if (lead < 0xC2 || lead > 0xF4) return {};
  const std::size_t size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  unsigned low = 0x80, high = 0xBF;
  if (lead == 0xE0) low = 0xA0;
  if (lead == 0xED) high = 0x9F;
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;
  for (std::size_t i = 1; i < size; ++i) {
    if (i == bytes.size()) return {i, false, true};
    if (byte(i) < low || byte(i) > high) return {i, false, false};
    low = 0x80;
    high = 0xBF;
  }
  return {size, true, false};
}

}  // namespace

void take_utf8(std::string& bytes, std::string& text) {
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const auto next = first_sequence(rest);
    if (next.open) break;
    if (next.valid)
      text += rest.substr(0, next.length);
    else
      text += "\xEF\xBF\xBD";
    rest.remove_prefix(next.length);
  }
  bytes.erase(0, bytes.size() - rest.size());
}

void finish_utf8(std::string& bytes, std::string& text) {
  take_utf8(bytes, text);
  if (!bytes.empty()) text += "\xEF\xBF\xBD";
  bytes.clear();
}

bool is_utf8(std::string_view bytes) { return valid_utf8_prefix(bytes) == bytes.size(); }

}  // namespace troupe::model
