#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::net {

using header_list = std::vector<std::pair<std::string, std::string>>;

/// A complete request (RFC 9112), as `request_reader` makes it.
struct http_request {
  std::string method;
  std::string target;  ///< "/v1/models/a%20b?x=1", or "*".
  header_list headers;
  std::string body;
  bool version_1_1 = true;
  bool keep_alive = true;      ///< The client allows another request on the connection.
  bool wants_upgrade = false;  ///< To WebSocket.

  /// The first header of that name in any case; empty when absent.
  std::string_view header(std::string_view name) const;
  /// Whether the headers of that name hold this directive, with a value or without (RFC 9111, 5.2). In any case.
  bool has_directive(std::string_view name, std::string_view directive) const;
  std::string_view path() const;  ///< The target without its query.
};

struct http_response {
  unsigned status = 200;
  std::string content_type = "application/json";
  header_list headers = {};
  std::string body = {};
};

/// How the body's end is told.
enum class body_framing { content_length, chunked, until_close, none };

/// Status line and header, with the blank line. `length` counts for content_length only.
std::string response_head(const http_response& response, body_framing framing, std::size_t length, bool keep_alive);

/// One chunk of a chunked body; `bytes` must not be empty.
std::string chunk_of(std::string_view bytes);
inline constexpr std::string_view last_chunk = "0\r\n\r\n";

std::string_view reason_phrase(unsigned status);
bool equal_ignoring_case(std::string_view a, std::string_view b);

/// "%2F" to "/"; faulty escapes stay as they are.
std::string percent_decoded(std::string_view text);

}  // namespace troupe::net
