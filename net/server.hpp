#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "base/result.hpp"
#include "config/settings.hpp"
#include "net/upstream.hpp"

namespace troupe::actors {
class service;
}

/// The network's side of Troupe: connections, HTTP/1.1, server-sent events and WebSockets in front of the actors.
namespace troupe::net {

/// Listens and serves until it is stopped. Each I/O thread owns the connections that it was handed: no connection is
/// ever touched by two threads. Members may be called from any thread.
class server {
 public:
  /// Binds and starts `settings.server.io_threads` threads. Port 0 picks a free one. An address that is taken or not
  /// ours is `error_kind::io` and says what to do. `service` must outlive the server.
  static result<std::unique_ptr<server>> listen(const config::settings& settings, actors::service& service);

  /// The same in front of anything that behaves like the service: tests, and later a gateway to remote workers.
  static result<std::unique_ptr<server>> listen(const config::settings& settings, upstream calls);

  ~server();  ///< Stops.

  std::uint16_t port() const;

  /// From now on an answer is the last one on its connection, and idle connections are closed. New ones are still
  /// accepted, so that whoever asks learns that the server is going. What runs goes on.
  void drain();

  /// No new connections; otherwise as `drain`.
  void stop_accepting();

  /// Waits until the last connection is closed. False: some were still open after `patience`.
  bool wait_until_idle(std::chrono::milliseconds patience);

  /// Closes every connection, cancels what they wait for and joins the threads.
  void stop();

 private:
  struct parts;
  explicit server(std::unique_ptr<parts> p);
  std::unique_ptr<parts> parts_;
};

}  // namespace troupe::net
