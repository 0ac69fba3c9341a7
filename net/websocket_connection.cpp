#include <spdlog/spdlog.h>

#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <deque>
#include <map>

#include "net/codec/stream.hpp"
#include "net/gateway.hpp"
#include "net/request_id.hpp"

namespace troupe::net {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
namespace websocket = beast::websocket;
using asio::ip::tcp;
using error_code = boost::system::error_code;

/// While more than this waits to be sent, chunks of streams aside, nothing is read: a client that only talks is paused.
/// Chunks are bounded by the flow window and pause nothing: cancel and ping get through beside them.
constexpr std::size_t max_unsent_replies = 256 << 10;

/// One WebSocket (RFC 6455) that carries many requests. Beast answers pings and closes politely: 1009 for a message
/// over the limit, 1007 for text that is no UTF-8, 1001 when the server goes.
class websocket_connection final : public connection, public std::enable_shared_from_this<websocket_connection> {
 public:
  websocket_connection(gateway& owner, tcp::socket socket, connection_slot slot, const http_request& upgrade)
      : owner_(owner),
        slot_(std::move(slot)),
        socket_(std::move(socket)),
        upgrade_(upgrade),
        id_(request_id_or_fresh(upgrade_.header("x-request-id"))),
        write_timer_(owner.context()) {
    window_ = std::make_shared<flow_window>(static_cast<std::int64_t>(owner.core().settings().stream_window_bytes));
    owner_.enter(this);
  }
  ~websocket_connection() override { owner_.leave(this); }

  void start();
  void close() override { cut(); }
  void drain() override;

 private:
  struct outgoing {
    std::string text;
    std::function<void()> written = {};
    bool is_chunk = false;  ///< Bounded by the flow window.
  };

  void read();
  void on_message(std::string_view text);
  void begin(stream::start request);
  void cancel(const std::string& id);
  call_output output_of(const std::string& id, bool streamed);
  void end_stream(const std::string& id);
  /// Answers a message. With the id of a request that runs, the error would be that request's end.
  void refuse(const std::string& id, const wire_error& failure);

  void send_text(std::string text) { send({.text = std::move(text)}); }
  void send(outgoing message);
  void send_next();
  void cut();

  gateway& owner_;
  connection_slot slot_;
  websocket::stream<tcp::socket> socket_;
  http_request upgrade_;
  std::string id_;
  beast::flat_buffer received_;
  bool reading_ = false;

  std::map<std::string, std::shared_ptr<running_call>, std::less<>> streams_;
  std::deque<outgoing> queue_;
  std::size_t unsent_replies_ = 0;       ///< Bytes of the queue that are no chunks.
  std::shared_ptr<flow_window> window_;  ///< Of all streams: they share the pipe.
  bool sending_ = false;
  bool draining_ = false;
  bool over_ = false;
  asio::steady_timer write_timer_;
};

void websocket_connection::start() {
  const auto& settings = owner_.core().settings();
  websocket::stream_base::timeout limits{};
  limits.handshake_timeout = settings.header_timeout;
  limits.idle_timeout = settings.idle_timeout;
  limits.keep_alive_pings = true;
  socket_.set_option(limits);
  socket_.read_message_max(settings.max_body_bytes);
  socket_.set_option(websocket::stream_base::decorator([id = id_](websocket::response_type& response) {
    response.set(http::field::server, "troupe");
    response.set("X-Request-Id", id);
  }));
  socket_.text(true);

  http::request<http::empty_body> request(http::verb::get, upgrade_.target, 11);
  for (const auto& [name, value] : upgrade_.headers) request.insert(name, value);
  socket_.async_accept(request, guarded(shared_from_this(), [this](const error_code& ec) {
                         owner_.core().metrics.request_finished(api::stream_path, "GET", ec ? 400 : 101,
                                                                std::chrono::seconds{0});
                         if (ec) return cut();
                         draining_ = draining_ || owner_.core().draining.load();
                         if (draining_) return drain();
                         read();
                       }));
}

void websocket_connection::read() {
  if (over_ || reading_ || unsent_replies_ > max_unsent_replies) return;
  reading_ = true;
  socket_.async_read(
      received_, guarded(shared_from_this(), [this](const error_code& ec, std::size_t) {
        reading_ = false;
        if (over_) return;
        if (ec) return cut();
        const auto data = received_.cdata();
        if (socket_.got_binary())
          send_text(stream::error_event({}, to_wire(error{error_kind::invalid, "messages must be text", {}})));
        else
          on_message({static_cast<const char*>(data.data()), data.size()});
        received_.clear();
        read();
      }));
}

void websocket_connection::on_message(std::string_view text) {
  auto message = stream::parse(text, owner_.core().settings().max_json_depth);
  if (auto* request = std::get_if<stream::start>(&message)) return begin(std::move(*request));
  if (const auto* request = std::get_if<stream::cancel>(&message)) return cancel(request->id);
  if (const auto* fault = std::get_if<stream::fault>(&message)) return refuse(fault->id, to_wire(fault->failure));
  send_text(stream::pong_event());
}

void websocket_connection::refuse(const std::string& id, const wire_error& failure) {
  send_text(stream::error_event(streams_.contains(id) ? "" : id, failure));
}

void websocket_connection::begin(stream::start request) {
  const auto fail = [&](const wire_error& failure) { refuse(request.id, failure); };
  const auto& requests = owner_.core().requests;
  if (streams_.contains(request.id))
    return fail(to_wire(error{error_kind::invalid, "'" + request.id + "' is already in use", "id"}));
  if (streams_.size() >= owner_.core().settings().max_streams)
    return fail(to_wire(error{error_kind::overloaded, "too many requests in flight on this connection", {}}));
  auto facts = requests.ready_model();
  if (const auto* failure = std::get_if<wire_error>(&facts)) return fail(*failure);
  const std::string request_id = id_ + ":" + request.id;
  auto terms = requests.terms_of(upgrade_, request_id);
  if (const auto* failure = std::get_if<wire_error>(&terms)) return fail(*failure);
  std::get<call_terms>(terms).window = window_;
  const auto& model = std::get<model_facts>(facts);
  const codec_context context{model, owner_.core().settings()};
  auto call = request.parse(request.body, context, {.id = request_id, .created = unix_seconds(), .model = model.name});
  if (!call) return fail(to_wire(call.error()));

  const bool streamed = call->stream;
  streams_[request.id] = running_call::start(requests.calls(), *std::move(call), std::get<call_terms>(terms),
                                             owner_.post_for(weak_from_this()), output_of(request.id, streamed));
  owner_.core().metrics.websocket_streams_changed(1);
}

call_output websocket_connection::output_of(const std::string& id, bool streamed) {
  // Calls end before their connection: it cancels them when it is cut, which empties these functions.
  const auto self = shared_from_this();
  call_output out;
  out.started = [self, id](const actors::generation_started& start) {
    self->send_text(stream::started_event(id, self->id_ + ":" + id, start));
  };
  out.chunks = [self, id](const std::vector<std::string>& chunks, std::function<void()> written) {
    for (const std::string& chunk : chunks)
      self->send({.text = stream::chunk_event(id, chunk),
                  .written = &chunk == &chunks.back() ? std::move(written) : nullptr,
                  .is_chunk = true});
  };
  out.whole = [self, id](const boost::json::object& whole) { self->send_text(stream::result_event(id, whole)); };
  out.done = [self, id, streamed] {
    if (streamed) self->send_text(stream::done_event(id));
    self->end_stream(id);
  };
  out.failed = [self, id](const wire_error& failure) {
    self->send_text(stream::error_event(id, failure));
    self->end_stream(id);
  };
  return out;
}

void websocket_connection::cancel(const std::string& id) {
  const auto found = streams_.find(id);
  if (found == streams_.end())
    return send_text(
        stream::error_event(id, to_wire(error{error_kind::not_found, "no such request is running", "id"})));
  found->second->cancel();
  send_text(stream::cancelled_event(id));
  end_stream(id);
}

void websocket_connection::end_stream(const std::string& id) {
  if (streams_.erase(id) > 0) owner_.core().metrics.websocket_streams_changed(-1);
  if (draining_) drain();
}

void websocket_connection::send(outgoing message) {
  if (over_) return;
  if (!message.is_chunk) unsent_replies_ += message.text.size();
  queue_.push_back(std::move(message));
  if (!sending_) send_next();
}

void websocket_connection::send_next() {
  if (queue_.empty()) {
    write_timer_.cancel();
    if (draining_) drain();
    return;
  }
  sending_ = true;
  write_timer_.expires_after(owner_.core().settings().write_timeout);
  write_timer_.async_wait([weak = weak_from_this()](const error_code& ec) {
    if (ec) return;
    if (auto self = weak.lock()) self->cut();
  });
  socket_.async_write(asio::buffer(queue_.front().text),
                      guarded(shared_from_this(), [this](const error_code& ec, std::size_t) {
                        sending_ = false;
                        if (over_) return;
                        if (ec) return cut();
                        outgoing sent = std::move(queue_.front());
                        queue_.pop_front();
                        if (!sent.is_chunk) unsent_replies_ -= sent.text.size();
                        if (sent.written) sent.written();
                        send_next();
                        read();
                      }));
}

void websocket_connection::drain() {
  draining_ = true;
  if (over_ || sending_ || !queue_.empty() || !streams_.empty() || !socket_.is_open()) return;
  over_ = true;
  socket_.async_close(websocket::close_code::going_away,
                      [self = shared_from_this()](const error_code&) { self->cut(); });
}

void websocket_connection::cut() {
  over_ = true;
  const auto running = std::exchange(streams_, {});
  for (const auto& [id, call] : running) {
    call->cancel();
    owner_.core().metrics.websocket_streams_changed(-1);
  }
  write_timer_.cancel();
  error_code ignored;
  beast::get_lowest_layer(socket_).close(ignored);
}

}  // namespace

void start_websocket(gateway& owner, tcp::socket socket, connection_slot slot, const http_request& upgrade) {
  std::make_shared<websocket_connection>(owner, std::move(socket), std::move(slot), upgrade)->start();
}

}  // namespace troupe::net
