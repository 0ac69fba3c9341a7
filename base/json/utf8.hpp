#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace troupe {

/// Bytes at the beginning of `text` that are valid UTF-8 (RFC 3629: no surrogates, no overlong forms): all of them, or
/// up to the first fault.
std::size_t valid_utf8_prefix(std::string_view text);

/// `text` with every byte that is not part of a valid character replaced by U+FFFD.
std::string to_valid_utf8(std::string text);

/// Characters (code points) that begin in `text`.
std::size_t count_characters(std::string_view text);

}  // namespace troupe
