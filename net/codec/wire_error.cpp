#include "net/codec/wire_error.hpp"

#include <algorithm>

#include "base/json/utf8.hpp"

namespace troupe::net {
namespace {

struct wire_kind {
  unsigned status;
  std::string_view code;
};

wire_kind kind_of(const troupe::error& failure) {
  switch (failure.kind) {
    case error_kind::invalid:
      return {400, "invalid_request"};
    case error_kind::not_found:
      return {404, failure.place == "model" ? "model_not_found" : "not_found"};
    case error_kind::unsupported:
      return {400, "unsupported"};
    case error_kind::too_large:
      return {400, "context_length_exceeded"};
    case error_kind::overloaded:
      return {503, "server_is_overloaded"};
    case error_kind::unavailable:
      return {503, "unavailable"};
    case error_kind::deadline_exceeded:
      return {504, "deadline_exceeded"};
    case error_kind::cancelled:
      return {status_client_closed, "cancelled"};
    case error_kind::corrupt:
    case error_kind::io:
    case error_kind::internal:
      break;
  }
  return {500, "internal_error"};
}

std::string_view type_of(unsigned status) {
  if (status == 429) return "rate_limit_error";
  if (status >= 500) return "server_error";
  return "invalid_request_error";
}

bool asks_to_wait(unsigned status) { return status == 429 || status == 503; }

}  // namespace

wire_error to_wire(const troupe::error& failure, std::optional<std::chrono::seconds> retry_after) {
  const auto [status, code] = kind_of(failure);
  wire_error out{.status = status, .code = std::string(code), .message = to_valid_utf8(failure.message)};
  if (status == 504) {
    out.stage = failure.place;
    out.message = (failure.place.empty() ? "" : "in stage " + failure.place + ": ") + out.message;
  } else if (!failure.place.empty()) {
    out.message = to_valid_utf8(failure.to_string());
    if (status < 500) out.param = to_valid_utf8(failure.place);
  }
  if (asks_to_wait(status) || out.stage == "queue")  // a wait that was too long is overload
    out.retry_after = std::max(std::chrono::seconds{1}, retry_after.value_or(std::chrono::seconds{1}));
  return out;
}

boost::json::object error_body(const wire_error& failure) {
  boost::json::object inner{
      {"message", failure.message}, {"type", type_of(failure.status)}, {"param", nullptr}, {"code", failure.code}};
  if (!failure.param.empty()) inner["param"] = failure.param;
  if (!failure.stage.empty()) inner["stage"] = failure.stage;
  return {{"error", std::move(inner)}};
}

}  // namespace troupe::net
