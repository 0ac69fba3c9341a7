#pragma once

#include <string>
#include <string_view>

namespace troupe {

/// Two lower-case digits per byte.
std::string to_hex(std::string_view bytes);

/// The bytes of text that `to_hex` has written; anything else gives unspecified bytes.
std::string from_hex(std::string_view hex);

}  // namespace troupe
