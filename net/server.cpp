#include "net/server.hpp"

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <mutex>
#include <thread>
#include <vector>

#include "net/gateway.hpp"

namespace troupe::net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using error_code = boost::system::error_code;

/// After accept failed for want of file descriptors or memory.
constexpr std::chrono::milliseconds accept_pause{100};

bool is_exhausted(const error_code& ec) {
  return ec == asio::error::no_descriptors || ec == asio::error::no_memory || ec == asio::error::no_buffer_space ||
         ec == boost::system::errc::too_many_files_open_in_system;
}

error cannot_listen(const std::string& host, std::uint16_t port, const error_code& ec) {
  const std::string address = host + ":" + std::to_string(port);
  std::string message = "cannot listen on " + address + ": " + ec.message();
  if (ec == asio::error::address_in_use)
    message += "; another program uses the port: stop it, or choose another with --port";
  else if (ec == asio::error::access_denied)
    message += "; ports below 1024 need privileges: choose another with --port";
  else
    message += "; choose another address with --host";
  return {error_kind::io, std::move(message), "server.port"};
}

error_code listen_at(tcp::acceptor& acceptor, const tcp::endpoint& endpoint) {
  error_code ec;
  acceptor.close(ec);  // From an earlier attempt.
  acceptor.open(endpoint.protocol(), ec);
  if (!ec) acceptor.set_option(tcp::acceptor::reuse_address(true), ec);
  if (!ec) acceptor.bind(endpoint, ec);
  if (!ec) acceptor.listen(asio::socket_base::max_listen_connections, ec);
  return ec;
}

/// A name may have several addresses, not all of them usable: "localhost" has ::1 also where IPv6 is off. Listens at
/// the first that can be had, IPv4's first, or says why the first of all could not. A taken port ends the search:
/// clients of that name would reach the program that has it.
error_code listen_at_any(tcp::acceptor& acceptor, std::vector<tcp::endpoint> endpoints) {
  std::stable_partition(endpoints.begin(), endpoints.end(), [](const auto& one) { return one.address().is_v4(); });
  error_code first;
  for (const tcp::endpoint& endpoint : endpoints) {
    const error_code ec = listen_at(acceptor, endpoint);
    if (!ec || ec == asio::error::address_in_use) return ec;
    if (!first) first = ec;
  }
  return first;
}

}  // namespace

struct server::parts {
  parts(const config::settings& settings, upstream calls) : core(settings, std::move(calls)) {
    for (std::uint32_t i = 0; i < settings.server.io_threads; ++i) gateways.push_back(std::make_unique<gateway>(core));
    acceptor.emplace(gateways.front()->context());
    pause.emplace(gateways.front()->context());
  }

  result<void> open();
  void accept();
  void accept_anew();
  void accept_later();
  void take(tcp::socket socket, gateway& owner);
  void turn_away(tcp::socket socket);

  server_core core;
  std::vector<std::unique_ptr<gateway>> gateways;
  std::optional<tcp::acceptor> acceptor;  ///< On the first gateway's thread.
  std::optional<asio::steady_timer> pause;
  std::uint64_t accepting = 0;  ///< Which accept is to be followed by the next one.
  std::size_t next_gateway = 0;
  std::uint16_t port = 0;
  std::mutex stopping;
};

result<void> server::parts::open() {
  const auto& settings = core.settings();
  error_code ec;
  tcp::resolver resolver(gateways.front()->context());
  const auto found = resolver.resolve(settings.host, std::to_string(settings.port),
                                      tcp::resolver::passive | tcp::resolver::numeric_service, ec);
  if (ec || found.empty())
    return error{error_kind::io, "'" + settings.host + "' is no address of this machine: " + ec.message(),
                 "server.host"};
  ec = listen_at_any(*acceptor, {found.begin(), found.end()});
  if (ec) return cannot_listen(settings.host, settings.port, ec);
  port = acceptor->local_endpoint(ec).port();
  return {};
}

void server::parts::accept() {
  gateway& owner = *gateways[next_gateway++ % gateways.size()];
  const std::uint64_t turn = ++accepting;
  acceptor->async_accept(owner.context(), [this, &owner, turn](const error_code& ec, tcp::socket socket) {
    if (!ec) take(std::move(socket), owner);
    if (turn != accepting || ec == asio::error::operation_aborted || !acceptor->is_open()) return;
    is_exhausted(ec) ? accept_later() : accept();
  });
}

void server::parts::accept_later() {
  pause->expires_after(accept_pause);
  pause->async_wait([this, turn = accepting](const error_code& ec) {
    if (!ec && turn == accepting && acceptor->is_open()) accept();
  });
}

/// After an exception on the acceptor's thread, which may have kept a handler from accepting again: a daemon that lives
/// and is deaf is worse than one that died.
void server::parts::accept_anew() {
  if (!acceptor->is_open()) return;
  error_code ignored;
  acceptor->cancel(ignored);
  accept();  // whatever was to follow an accept or a pause before has lost its turn
}

void server::parts::take(tcp::socket socket, gateway& owner) {
  if (core.connections.load() >= core.settings().max_connections)
    turn_away(std::move(socket));
  else
    owner.adopt(std::move(socket), core.take_slot());
}

/// Says why and closes: what fits into an empty send buffer needs no waiting.
void server::parts::turn_away(tcp::socket socket) {
  const http_response response = error_response({.status = 503,
                                                 .code = "server_is_overloaded",
                                                 .message = "too many connections; try again soon",
                                                 .retry_after = std::chrono::seconds{1}});
  const std::string text =
      response_head(response, body_framing::content_length, response.body.size(), false) + response.body;
  error_code ignored;
  socket.non_blocking(true, ignored);
  socket.write_some(asio::buffer(text), ignored);
  socket.shutdown(tcp::socket::shutdown_send, ignored);
}

server::server(std::unique_ptr<parts> p) : parts_(std::move(p)) {}
server::~server() { stop(); }

result<std::unique_ptr<server>> server::listen(const config::settings& settings, upstream calls) {
  auto made = std::make_unique<parts>(settings, std::move(calls));
  if (auto opened = made->open(); !opened) return opened.error();
  std::unique_ptr<server> out(new server(std::move(made)));  // stops what was started, should a start fail
  parts& started = *out->parts_;
  started.accept();
  const auto& first = started.gateways.front();
  first->start([&started] { started.accept_anew(); });
  for (const auto& one : started.gateways)
    if (one != first) one->start();
  return out;
}

std::uint16_t server::port() const { return parts_->port; }

void server::drain() {
  parts_->core.draining.store(true);
  for (const auto& one : parts_->gateways) one->for_each_connection([](connection& client) { client.drain(); });
}

void server::stop_accepting() {
  parts_->gateways.front()->post()([parts = parts_.get()] {
    error_code ignored;
    parts->acceptor->close(ignored);
    parts->pause->cancel();
  });
  drain();
}

bool server::wait_until_idle(std::chrono::milliseconds patience) {
  const auto limit = std::chrono::steady_clock::now() + patience;
  while (parts_->core.connections.load() > 0) {
    if (std::chrono::steady_clock::now() > limit) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
  }
  return true;
}

void server::stop() {
  const std::lock_guard lock(parts_->stopping);
  stop_accepting();
  for (const auto& one : parts_->gateways) one->stop_and_join();
}

}  // namespace troupe::net
