#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <string_view>
#include <variant>

#include "net/codec/answer.hpp"
#include "net/codec/wire_error.hpp"

/// The protocol of the WebSocket at /v1/stream: JSON messages, several requests on one connection told apart by an id
/// that the client chooses. docs/api.md describes it for users.
namespace troupe::net::stream {

/// {"type": "generate" | "completion" | "chat", "id": ..., and the members of that API's body}. Streams unless it says
/// not to.
struct start {
  std::string id;
  generation_parser parse;
  boost::json::object body;
};
struct cancel {
  std::string id;
};
struct ping {};

/// A message that is none of these; `id` where it could be read.
struct fault {
  std::string id;
  troupe::error failure;
};

using message = std::variant<start, cancel, ping, fault>;
message parse(std::string_view text, std::size_t max_depth);

std::string started_event(std::string_view id, std::string_view request_id, const actors::generation_started& start);
std::string chunk_event(std::string_view id, std::string_view chunk);  ///< `chunk`: a JSON text.
std::string result_event(std::string_view id, const boost::json::object& whole);
std::string done_event(std::string_view id);
std::string cancelled_event(std::string_view id);
std::string error_event(std::string_view id, const wire_error& failure);  ///< `id` empty: of no request.
std::string pong_event();

}  // namespace troupe::net::stream
