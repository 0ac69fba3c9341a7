#include "base/json/utf8.hpp"

#include <utf8proc.h>

#include <algorithm>

namespace troupe {
namespace {

bool is_ascii(char c) { return static_cast<unsigned char>(c) < 0x80; }

}  // namespace

std::size_t valid_utf8_prefix(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    if (is_ascii(text[at])) {
      ++at;
      continue;
    }
    utf8proc_int32_t code_point = 0;
    const auto length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data() + at),
                                         static_cast<utf8proc_ssize_t>(std::min<std::size_t>(text.size() - at, 4)),
                                         &code_point);
    if (length <= 0) return at;
    at += static_cast<std::size_t>(length);
  }
  return at;
}

std::string to_valid_utf8(std::string text) {
  std::size_t good = valid_utf8_prefix(text);
  if (good == text.size()) return text;
  std::string out;
  std::string_view rest = text;
  while (true) {
    out += rest.substr(0, good);
    if (good == rest.size()) return out;
    out += "\xEF\xBF\xBD";
    rest.remove_prefix(good + 1);
    good = valid_utf8_prefix(rest);
  }
}

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](unsigned char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace troupe
