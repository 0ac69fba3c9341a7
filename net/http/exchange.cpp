#include "net/http/exchange.hpp"

#include <boost/json/serialize.hpp>
#include <utility>

namespace troupe::net {

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

http_response exchange::with_id(http_response response) const {
  response.headers.emplace_back("X-Request-Id", id_);
  return response;
}

void exchange::respond(http_response response) {
  if (state_ != state::waiting) return;
  const bool bodiless = response.status == 204;
  const std::string body = std::move(response.body);
  const unsigned status = response.status;
  if (bodiless) response.content_type.clear();
  output_ += response_head(with_id(std::move(response)), bodiless ? body_framing::none : body_framing::content_length,
                           body.size(), keep_alive_);
  if (!is_head() && !bodiless) output_ += body;
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
  output_ += response_head(with_id(std::move(head)), framing_, 0, keep_alive_);
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
