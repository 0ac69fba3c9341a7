#include "net/http/exchange.hpp"

#include <boost/json/serialize.hpp>
#include <utility>

namespace troupe::net {
namespace {

/// Every answer begins so (response_head).
constexpr std::string_view first_bytes = "HTTP/1.1 ";

}  // namespace

http_response error_response(const wire_error& failure) {
  http_response response{.status = failure.status, .body = boost::json::serialize(error_body(failure)) + "\n"};
  if (failure.retry_after) response.headers.emplace_back("Retry-After", std::to_string(failure.retry_after->count()));
  return response;
}

std::string event_text(std::string_view json) {
  std::string text = "data: ";
  text += json;
  text += "\n\n";
  return text;
}

exchange::exchange(http_request request, std::string request_id, hooks callbacks)
    : request_(std::move(request)),
      id_(std::move(request_id)),
      hooks_(std::move(callbacks)),
      keep_alive_(request_.keep_alive) {}

void exchange::send_head(http_response response, std::size_t length) {
  response.headers.emplace_back("X-Request-Id", id_);
  const std::string head = response_head(response, framing_, length, keep_alive_);
  output_ += std::string_view(head).substr(first_bytes_sent_ ? first_bytes.size() : 0);
}

void exchange::send_first_bytes() {
  if (state_ != state::waiting || first_bytes_sent_) return;
  first_bytes_sent_ = true;
  output_ += first_bytes;
}

void exchange::respond(http_response response) {
  if (state_ != state::waiting) return;
  const std::string body = std::move(response.body);
  const unsigned status = response.status;
  framing_ = status == 204 ? body_framing::none : body_framing::content_length;
  if (framing_ == body_framing::none) response.content_type.clear();
  send_head(std::move(response), body.size());
  if (framing_ != body_framing::none && !is_head()) output_ += body;
  complete_with(status);
}

void exchange::fail(const wire_error& failure) {
  if (state_ == state::waiting) return respond(error_response(failure));
  if (state_ != state::streaming) return;
  if (is_event_stream_) write(event_text(boost::json::serialize(error_body(failure))));
  keep_alive_ = false;
  status_ = failure.status;
  close_stream();
}

void exchange::open_stream(http_response head) {
  if (state_ != state::waiting) return;
  framing_ = request_.version_1_1 ? body_framing::chunked : body_framing::until_close;
  if (framing_ == body_framing::until_close) keep_alive_ = false;
  is_event_stream_ = head.content_type.starts_with("text/event-stream");
  status_ = head.status;
  send_head(std::move(head), 0);
  state_ = state::streaming;
  hooks_.wake();
}

void exchange::write(std::string_view bytes, std::function<void()> written) {
  if (state_ != state::streaming || bytes.empty()) return;
  if (written) written_.push_back(std::move(written));
  if (is_head()) return hooks_.wake();
  if (framing_ == body_framing::chunked) {
    output_ += chunk_of(bytes);
  } else {
    output_ += bytes;
  }
  hooks_.wake();
}

void exchange::close_stream() {
  if (state_ != state::streaming) return;
  if (framing_ == body_framing::chunked && !is_head()) output_ += last_chunk;
  complete_with(status_);
}

void exchange::ping() {
  if (is_event_stream_) write(": ping\n\n");
}

void exchange::complete_with(unsigned status) {
  state_ = state::complete;
  status_ = status;
  cancel_ = nullptr;
  hooks_.finished(*this);
  hooks_.wake();
}

void exchange::abandon() {
  if (state_ == state::complete) return;
  state_ = state::complete;
  status_ = status_client_closed;
  output_.clear();
  written_.clear();
  if (auto cancel = std::exchange(cancel_, nullptr)) cancel();
  hooks_.finished(*this);
}

std::string exchange::take_output(std::vector<std::function<void()>>& written) {
  written = std::exchange(written_, {});
  return std::exchange(output_, {});
}

}  // namespace troupe::net
