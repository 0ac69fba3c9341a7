#pragma once

#include <boost/json/object.hpp>
#include <chrono>
#include <optional>
#include <string>

#include "base/result.hpp"

namespace troupe::net {

/// A failure as clients see it: an HTTP status and OpenAI's body {"error": {message, type, param, code}}. `code` is
/// always a string; a deadline's error also has "stage".
struct wire_error {
  unsigned status = 500;
  std::string code;
  std::string message;
  std::string param = {};  ///< The JSON field; empty: null.
  std::string stage = {};  ///< Where time ran out; empty: not said.
  std::optional<std::chrono::seconds> retry_after = std::nullopt;
};

/// `retry_after`: as the actors computed it. Statuses that ask for a wait always get one of at least a second.
wire_error to_wire(const troupe::error& failure, std::optional<std::chrono::seconds> retry_after = std::nullopt);

boost::json::object error_body(const wire_error& failure);

/// The status of an answer that nobody read (nginx's number): for logs and metrics, never sent.
inline constexpr unsigned status_client_closed = 499;

}  // namespace troupe::net
