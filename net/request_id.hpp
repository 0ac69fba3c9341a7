#pragma once

#include <string>
#include <string_view>

namespace troupe::net {

/// Whether a client may choose this id, of a request or of one among a WebSocket's: 1 to 128 printable ASCII
/// characters.
bool is_request_id(std::string_view text);

/// The id that the client gave, where it may be one; otherwise a fresh one.
std::string request_id_or_fresh(std::string_view given);

}  // namespace troupe::net
