#include <netinet/in.h>
#include <netinet/tcp.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>

#include "net/gateway.hpp"
#include "net/http/request_reader.hpp"
#include "net/request_id.hpp"

namespace troupe::net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using error_code = boost::system::error_code;
using clock = std::chrono::steady_clock;

/// Requests read ahead of the answer that is being sent.
constexpr std::size_t max_pipelined = 16;
/// After a last answer: how long and how much a client may still send before the connection is cut. Cutting at once
/// would reset it and take the answer from a client that is still sending (RFC 9112, 9.6).
constexpr std::chrono::seconds linger_time{5};
constexpr std::size_t linger_bytes = 64 << 20;
/// How often a client whose bytes are not being read is looked at.
constexpr std::chrono::milliseconds paused_check{500};
/// A client that closes its sending side this soon after its request still wants the answer.
constexpr std::chrono::milliseconds half_close_grace{250};
constexpr int unsent_low_water = 64 << 10;

class http_connection final : public connection, public std::enable_shared_from_this<http_connection> {
 public:
  http_connection(gateway& owner, tcp::socket socket, connection_slot slot)
      : owner_(owner),
        slot_(std::move(slot)),
        socket_(std::move(socket)),
        reader_({owner.core().settings().max_header_bytes, owner.core().settings().max_body_bytes}),
        timer_(owner.context()) {
    owner_.enter(this);
  }
  ~http_connection() override { owner_.leave(this); }

  void start();
  void close() override { cut(); }
  void drain() override;

 private:
  const config::server_settings& settings() const { return owner_.core().settings(); }

  // Receiving.
  void wait_readable();
  void on_readable();
  void read_requests();
  void accept_request(http_request request);
  void refuse(const wire_error& failure);
  void upgrade(const http_request& request);
  void peer_closed();
  bool reading_allowed() const { return !last_request_read_ && exchanges_.size() < max_pipelined; }

  std::shared_ptr<exchange> open_exchange(http_request request);
  void log(const exchange& done) const;

  // Sending.
  void flush();
  void send_some();
  void on_sent(std::size_t bytes);
  void finish_sending();

  // Time.
  void arm();
  void on_timer();
  clock::time_point next_check() const;
  void start_read_phase();
  bool peer_vanished();

  void cut();

  gateway& owner_;
  connection_slot slot_;
  tcp::socket socket_;
  request_reader reader_;
  std::deque<std::shared_ptr<exchange>> exchanges_;  ///< In the order of their requests; the first one is being sent.

  std::string sending_;
  std::size_t sent_ = 0;
  std::vector<std::function<void()>> when_sent_;
  bool send_in_progress_ = false;
  bool owes_continue_ = false;  ///< A client waits for the interim answer, which goes out in its turn.

  bool waiting_readable_ = false;
  bool last_request_read_ = false;  ///< What comes now is discarded.
  bool peer_closed_ = false;
  bool lingering_ = false;
  bool cut_ = false;
  bool handed_over_ = false;
  std::size_t discarded_ = 0;

  asio::steady_timer timer_;
  clock::time_point armed_for_ = clock::time_point::max();
  request_reader::phase phase_ = request_reader::phase::idle;
  clock::time_point read_limit_ = clock::time_point::max();
  clock::time_point send_limit_ = clock::time_point::max();
  clock::time_point linger_limit_ = clock::time_point::max();
  clock::time_point ping_at_ = clock::time_point::max();
};

// ---------------------------------------------------------------------------------------------------------------------
// Receiving.

void http_connection::start() {
  error_code ignored;
  socket_.set_option(tcp::no_delay(true), ignored);
  socket_.set_option(asio::socket_base::keep_alive(true), ignored);
  socket_.non_blocking(true, ignored);
  // What a client does not take stays with us, where it is counted, instead of in the kernel's buffers.
  ::setsockopt(socket_.native_handle(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent_low_water, sizeof unsent_low_water);
  start_read_phase();
  wait_readable();
  arm();
}

void http_connection::wait_readable() {
  if (waiting_readable_ || cut_ || peer_closed_ || handed_over_) return;
  if (!reading_allowed() && !last_request_read_) return;
  waiting_readable_ = true;
  socket_.async_wait(tcp::socket::wait_read, guarded(shared_from_this(), [this](const error_code& ec) {
                       waiting_readable_ = false;
                       if (!ec && !cut_ && !handed_over_) on_readable();
                     }));
}

void http_connection::on_readable() {
  error_code ec;
  const std::size_t bytes = socket_.read_some(asio::buffer(owner_.scratch), ec);
  if (ec == asio::error::would_block || ec == asio::error::interrupted) return wait_readable();
  if (ec == asio::error::eof) return peer_closed();
  if (ec) return cut();
  if (last_request_read_) {
    discarded_ += bytes;
    if (discarded_ > linger_bytes) return cut();
  } else {
    reader_.add({owner_.scratch.data(), bytes});
    read_requests();
  }
  wait_readable();
  arm();
}

void http_connection::read_requests() {
  while (reading_allowed() && !handed_over_ && !cut_) {
    auto step = reader_.next();
    start_read_phase();
    if (auto* request = std::get_if<http_request>(&step)) {
      accept_request(std::move(*request));
    } else if (const auto* failure = std::get_if<wire_error>(&step)) {
      refuse(*failure);
    } else if (std::holds_alternative<request_reader::expects_continue>(step)) {
      owes_continue_ = true;
      return flush();
    } else {
      return;
    }
  }
}

std::shared_ptr<exchange> http_connection::open_exchange(http_request request) {
  std::string id = request_id_or_fresh(request.header("x-request-id"));
  std::weak_ptr<http_connection> weak = weak_from_this();
  exchange::hooks hooks;
  hooks.post = owner_.post_for(weak);
  hooks.wake = [weak] {
    if (auto self = weak.lock()) self->flush();
  };
  hooks.finished = [weak](const exchange& done) {
    if (auto self = weak.lock()) self->log(done);
  };
  return exchanges_.emplace_back(std::make_shared<exchange>(std::move(request), std::move(id), std::move(hooks)));
}

void http_connection::accept_request(http_request request) {
  owes_continue_ = false;  // its body came unasked
  if (request.wants_upgrade && request.method == "GET" && request.path() == api::stream_path && exchanges_.empty() &&
      !send_in_progress_ && reader_.where() == request_reader::phase::idle)
    return upgrade(request);
  const bool last = !request.keep_alive || owner_.core().draining.load();
  const auto to = open_exchange(std::move(request));
  if (last) {
    last_request_read_ = true;
    to->close_connection();
  }
  owner_.core().requests.handle(to);
}

void http_connection::refuse(const wire_error& failure) {
  owes_continue_ = false;
  last_request_read_ = true;
  const auto to = open_exchange({});
  to->close_connection();
  to->fail(failure);
}

void http_connection::upgrade(const http_request& request) {
  handed_over_ = true;
  timer_.cancel();
  start_websocket(owner_, std::move(socket_), std::move(slot_), request);
}

/// The client will send nothing more. One that waits for a generation counts as gone: through a proxy a client that
/// closed looks the same as one that only closed its sending side. Except right after its request: some clients close
/// their sending side to say that this was all. Whether one of those is really there is found out by sending the
/// beginning that every answer has: a client that is gone resets the connection. Answers that are ready are still sent.
void http_connection::peer_closed() {
  peer_closed_ = true;
  last_request_read_ = true;
  const auto grace_begins = clock::now() - half_close_grace;
  for (const auto& waiting : exchanges_)
    if (waiting->cancellable() && (waiting->streaming() || waiting->begun() < grace_begins)) waiting->abandon();
  if (lingering_ || (exchanges_.empty() && !send_in_progress_)) return cut();
  if (!exchanges_.empty() && !send_in_progress_) exchanges_.front()->send_first_bytes();
  socket_.async_wait(tcp::socket::wait_error, [self = shared_from_this()](const error_code& ec) {
    if (!ec) self->cut();
  });
  flush();
}

void http_connection::log(const exchange& done) const {
  const auto took = clock::now() - done.begun();
  owner_.core().metrics.request_finished(done.route, done.request().method, done.status(), took);
  spdlog::debug("{} {} {} {} {:.1f} ms", done.id(), done.request().method, done.request().path().substr(0, 200),
                done.status(), std::chrono::duration<double, std::milli>(took).count());
}

// ---------------------------------------------------------------------------------------------------------------------
// Sending: one write at a time, everything that piled up meanwhile in the next.

void http_connection::flush() {
  while (!cut_ && !send_in_progress_ && (!exchanges_.empty() || owes_continue_)) {
    if (exchanges_.empty()) {
      owes_continue_ = false;
      sending_ = "HTTP/1.1 100 Continue\r\n\r\n";
      send_in_progress_ = true;
      return send_some();
    }
    exchange& first = *exchanges_.front();
    if (first.has_output()) {
      sending_ = first.take_output(when_sent_);
      send_in_progress_ = true;
      return send_some();
    }
    if (!first.complete()) break;
    const bool go_on = first.keep_alive() && first.status() != status_client_closed;
    exchanges_.pop_front();
    if (!go_on) {
      for (const auto& rest : exchanges_) rest->abandon();
      exchanges_.clear();
      return finish_sending();
    }
    read_limit_ = clock::time_point::max();
    start_read_phase();
    read_requests();
    wait_readable();
  }
  if (exchanges_.empty() && !send_in_progress_ && last_request_read_) return finish_sending();
  arm();
}

void http_connection::send_some() {
  send_limit_ = clock::now() + settings().write_timeout;
  ping_at_ = clock::now() + settings().sse_ping;
  arm();
  socket_.async_write_some(asio::buffer(sending_.data() + sent_, sending_.size() - sent_),
                           guarded(shared_from_this(), [this](const error_code& ec, std::size_t bytes) {
                             if (cut_) return;
                             if (ec) return cut();
                             on_sent(bytes);
                           }));
}

void http_connection::on_sent(std::size_t bytes) {
  sent_ += bytes;
  if (sent_ < sending_.size()) return send_some();
  sending_.clear();
  sent_ = 0;
  send_in_progress_ = false;
  send_limit_ = clock::time_point::max();
  for (const auto& written : std::exchange(when_sent_, {})) written();
  start_read_phase();
  flush();
}

/// Everything is said: closes our side and waits for the client's end.
void http_connection::finish_sending() {
  if (lingering_ || cut_) return;
  if (peer_closed_) return cut();
  lingering_ = true;
  last_request_read_ = true;
  linger_limit_ = clock::now() + linger_time;
  error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
  wait_readable();
  arm();
}

void http_connection::cut() {
  if (cut_) return;
  cut_ = true;
  const auto keep_alive_through = shared_from_this();
  for (const auto& waiting : exchanges_) waiting->abandon();
  exchanges_.clear();
  when_sent_.clear();
  timer_.cancel();
  error_code ignored;
  socket_.close(ignored);
}

void http_connection::drain() {
  if (exchanges_.empty() && !send_in_progress_ && phase_ == request_reader::phase::idle) return finish_sending();
  if (!exchanges_.empty()) exchanges_.back()->close_connection();
}

// ---------------------------------------------------------------------------------------------------------------------
// Time.

/// The limit runs from the beginning of a phase; waiting for an answer has none.
void http_connection::start_read_phase() {
  using phase = request_reader::phase;
  const phase now_in = reader_.where();
  if (now_in == phase::idle && (!exchanges_.empty() || send_in_progress_)) {
    read_limit_ = clock::time_point::max();
  } else if (now_in != phase_ || read_limit_ == clock::time_point::max()) {
    read_limit_ = clock::now() + (now_in == phase::idle     ? settings().idle_timeout
                                  : now_in == phase::header ? settings().header_timeout
                                                            : settings().body_timeout);
  }
  phase_ = now_in;
}

clock::time_point http_connection::next_check() const {
  clock::time_point soonest = std::min(send_limit_, linger_limit_);
  if (!last_request_read_ && reading_allowed()) soonest = std::min(soonest, read_limit_);
  if (!exchanges_.empty()) {
    if (exchanges_.front()->streaming() && !send_in_progress_) soonest = std::min(soonest, ping_at_);
    if (!waiting_readable_ && !peer_closed_) soonest = std::min(soonest, clock::now() + paused_check);
  }
  return soonest;
}

/// Keeps one timer for the soonest limit. A limit that moved later is noticed when the timer fires.
void http_connection::arm() {
  if (cut_ || handed_over_) return;
  const auto soonest = next_check();
  if (soonest >= armed_for_) return;
  armed_for_ = soonest;
  timer_.expires_at(soonest);
  timer_.async_wait(guarded(shared_from_this(), [this](const error_code& ec) {
    if (ec || cut_ || handed_over_) return;
    armed_for_ = clock::time_point::max();
    on_timer();
  }));
}

void http_connection::on_timer() {
  const auto now = clock::now();
  if (now >= send_limit_ || now >= linger_limit_) return cut();
  if (!last_request_read_ && reading_allowed() && now >= read_limit_) {
    if (phase_ == request_reader::phase::idle) return finish_sending();
    const bool header = phase_ == request_reader::phase::header;
    refuse({.status = 408,
            .code = "request_timeout",
            .message = header ? "the request's header took too long" : "the request's body took too long"});
  }
  if (!exchanges_.empty() && exchanges_.front()->streaming() && !send_in_progress_ && now >= ping_at_) {
    ping_at_ = now + settings().sse_ping;
    exchanges_.front()->ping();
  }
  if (!exchanges_.empty() && !waiting_readable_ && !peer_closed_ && peer_vanished()) return cut();
  arm();
}

/// While nothing is read, the end of a connection is seen only in the kernel's state of it.
bool http_connection::peer_vanished() {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(socket_.native_handle(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return true;
  return info.tcpi_state != TCP_ESTABLISHED;
}

}  // namespace

void start_http(gateway& owner, tcp::socket socket, connection_slot slot) {
  const auto one = std::make_shared<http_connection>(owner, std::move(socket), std::move(slot));
  guarded(one, [&] { one->start(); })();
}

}  // namespace troupe::net
