#pragma once

#include <array>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_set>

#include "net/api.hpp"
#include "net/http/exchange.hpp"
#include "net/http_metrics.hpp"

/// Includes Asio: for this room's connection files only.
namespace troupe::net {

struct server_core;

/// A place among the `max_connections`, taken by `server_core::take_slot`. Given back wherever its holder ends.
struct give_slot_back {
  void operator()(server_core* core) const;
};
using connection_slot = std::unique_ptr<server_core, give_slot_back>;

/// What every gateway of a server shares. Outlives all connections.
struct server_core {
  server_core(const config::settings& settings, upstream calls)
      : requests(settings, std::move(calls)), metrics(*requests.calls().metrics) {}

  api requests;
  http_metrics metrics;
  std::atomic<std::uint32_t> connections{0};
  std::atomic<bool> draining{false};

  const config::server_settings& settings() const { return requests.settings().server; }
  connection_slot take_slot();
};

/// A connection as its gateway knows it. Gateway's thread only.
class connection {
 public:
  virtual ~connection() = default;
  virtual void close() = 0;  ///< At once; cancels what the client waits for.
  virtual void drain() = 0;  ///< After the current answers; at once when idle.
};

/// Makes the handler of an operation of `self`, which it keeps alive. A connection whose handler throws is closed: it
/// may have been left half changed.
template <class Connection, class Task>
auto guarded(std::shared_ptr<Connection> self, Task task) {
  return [self = std::move(self), task = std::move(task)](const auto&... results) {
    try {
      task(results...);
    } catch (...) {
      self->close();
      throw;
    }
  };
}

/// One I/O thread and the connections that it owns: all their handlers run on it, so none of them locks anything.
class gateway {
 public:
  explicit gateway(server_core& core);
  ~gateway();  ///< The thread must have been joined.

  /// `recover` is called on the thread after a handler threw, and again until it succeeds.
  void start(std::function<void()> recover = {});
  void stop_and_join();  ///< Closes the connections on the thread, then ends it.

  boost::asio::io_context& context() { return context_; }
  server_core& core() { return core_; }
  poster post() const { return post_; }
  poster post_for(std::weak_ptr<connection> one) const;  ///< Its tasks are guarded while `one` lives.

  void adopt(boost::asio::ip::tcp::socket socket, connection_slot slot);  ///< A new client. Any thread.
  void for_each_connection(std::function<void(connection&)> task);  ///< On the gateway's thread. Any thread may ask.

  void enter(connection* one) { connections_.insert(one); }
  void leave(connection* one) { connections_.erase(one); }

  /// Received bytes pass through here: an idle connection holds no buffer.
  std::array<char, 64 << 10> scratch;

 private:
  /// Lets tasks in only while the context lives: actors may still hold posters when the server is gone.
  struct door {
    std::mutex mutex;
    boost::asio::io_context* context;
  };

  server_core& core_;
  std::unordered_set<connection*> connections_;  ///< Outlives the context, whose handlers own the connections.
  boost::asio::io_context context_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::shared_ptr<door> door_;
  poster post_;
  std::thread thread_;
};

/// Serves HTTP/1.1 on an accepted socket until either side ends it. On the gateway's thread.
void start_http(gateway& owner, boost::asio::ip::tcp::socket socket, connection_slot slot);

/// A WebSocket client: takes over the connection on which `upgrade` was the last request.
void start_websocket(gateway& owner, boost::asio::ip::tcp::socket socket, connection_slot slot,
                     const http_request& upgrade);

}  // namespace troupe::net
