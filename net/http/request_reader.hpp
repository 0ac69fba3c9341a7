#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "net/codec/wire_error.hpp"
#include "net/http/message.hpp"

namespace troupe::net {

struct request_limits {
  std::uint32_t header_bytes = 16 << 10;
  std::uint64_t body_bytes = 4 << 20;
};

/// Cuts a connection's bytes into HTTP/1.1 requests (RFC 9112) and refuses what could be read in two ways: two lengths,
/// a length and chunks, an unknown transfer coding, a missing Host. Knows no socket: bytes in, requests out.
class request_reader {
 public:
  explicit request_reader(request_limits limits);
  ~request_reader();

  /// Bytes as they arrived.
  void add(std::string_view bytes);

  struct need_more {};
  struct expects_continue {};  ///< Once: the body will be sent after "100 Continue" (RFC 9110, 10.1.1).
  using step = std::variant<need_more, expects_continue, http_request, wire_error>;

  /// What the bytes so far hold next. After an error the connection's bytes mean nothing any more: never call it again.
  step next();

  enum class phase { idle, header, body };
  phase where() const;  ///< Between requests, or inside which part of one: for time limits.

 private:
  struct parts;
  std::unique_ptr<parts> parts_;
};

}  // namespace troupe::net
