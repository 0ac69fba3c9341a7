#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/codec/wire_error.hpp"
#include "net/http/message.hpp"

namespace troupe::net {

/// Runs a task later on the connection's thread. Copyable; any thread may call it, also after the connection is gone.
using poster = std::function<void(std::function<void()>)>;

/// One request and its answer. Handlers write the answer here, at once or later; the connection takes the bytes when
/// it is this answer's turn and the client reads. Connection's thread only.
class exchange {
 public:
  struct hooks {
    poster post;
    std::function<void()> wake;                     ///< There is something to send.
    std::function<void(const exchange&)> finished;  ///< The answer is complete or given up: for logs and metrics.
  };
  exchange(http_request request, std::string request_id, hooks callbacks);

  const http_request& request() const { return request_; }
  const std::string& id() const { return id_; }  ///< X-Request-Id.
  const poster& post() const { return hooks_.post; }
  std::string route = "other";  ///< The path as metrics name it.

  // The handler's side.
  void respond(http_response response);
  void fail(const wire_error& failure);  ///< As JSON; or as the last event of a stream that was already begun.
  void open_stream(http_response head);
  /// Body bytes of a stream; `written` is called when they left for the client.
  void write(std::string_view bytes, std::function<void()> written = {});
  void close_stream();
  void set_cancel(std::function<void()> cancel) { cancel_ = std::move(cancel); }
  void close_connection() { keep_alive_ = false; }  ///< After this answer. Before `respond` or `open_stream`.

  // The connection's side.
  std::string take_output(std::vector<std::function<void()>>& written);
  bool has_output() const { return !output_.empty(); }
  bool complete() const { return state_ == state::complete; }
  bool streaming() const { return state_ == state::streaming; }
  bool cancellable() const { return cancel_ != nullptr && !complete(); }
  bool keep_alive() const { return keep_alive_; }
  void send_first_bytes();  ///< What every answer begins with: a probe whether the client is still there.
  void ping();              ///< A comment in an event stream (HTML standard, 9.2.6): keeps proxies from closing it.
  void abandon();           ///< The client is gone: cancels, and nothing is sent any more.

  unsigned status() const { return status_; }
  std::chrono::steady_clock::time_point begun() const { return begun_; }

 private:
  enum class state { waiting, streaming, complete };
  void complete_with(unsigned status);
  void send_head(http_response response, std::size_t length);
  bool is_head() const { return request_.method == "HEAD"; }

  http_request request_;
  std::string id_;
  hooks hooks_;
  std::function<void()> cancel_;
  std::string output_;
  bool first_bytes_sent_ = false;
  std::vector<std::function<void()>> written_;
  state state_ = state::waiting;
  body_framing framing_ = body_framing::chunked;
  bool keep_alive_ = true;
  bool is_event_stream_ = false;
  unsigned status_ = 0;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

/// An answer that says what went wrong, in OpenAI's form, with Retry-After where the status asks for a wait.
http_response error_response(const wire_error& failure);

/// "data: {...}\n\n"
std::string event_text(std::string_view json);

}  // namespace troupe::net
