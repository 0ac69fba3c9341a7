#include "net/gateway.hpp"

#include <spdlog/spdlog.h>

#include <boost/asio/post.hpp>

namespace troupe::net {

connection_slot server_core::take_slot() {
  connections.fetch_add(1);
  metrics.connections_changed(1);
  return connection_slot(this);
}

void give_slot_back::operator()(server_core* core) const {
  core->connections.fetch_sub(1);
  core->metrics.connections_changed(-1);
}

gateway::gateway(server_core& core)
    : core_(core), context_(1), work_(context_.get_executor()), door_(std::make_shared<door>()) {
  door_->context = &context_;
  post_ = [door = door_](std::function<void()> task) {
    const std::lock_guard lock(door->mutex);
    if (door->context) boost::asio::post(*door->context, std::move(task));
  };
}

gateway::~gateway() {
  const std::lock_guard lock(door_->mutex);
  door_->context = nullptr;
}

void gateway::start(std::function<void()> recover) {
  thread_ = std::thread([this, recover = std::move(recover)] {
    // What a handler throws ends what it was doing, not the daemon with everybody's streams.
    for (bool failed = false;;) {
      try {
        if (std::exchange(failed, false) && recover) boost::asio::post(context_, recover);
        context_.run();
        return;
      } catch (const std::exception& failure) {
        failed = true;
        spdlog::error("a connection's handler failed: {}", failure.what());
      }
    }
  });
}

void gateway::stop_and_join() {
  if (!thread_.joinable()) return;
  for_each_connection([](connection& one) { one.close(); });
  post_([this] { context_.stop(); });
  thread_.join();
}

poster gateway::post_for(std::weak_ptr<connection> one) const {
  return [post = post_, one = std::move(one)](std::function<void()> task) {
    post([one, task = std::move(task)] {
      if (auto self = one.lock()) return guarded(std::move(self), std::cref(task))();
      task();
    });
  };
}

void gateway::for_each_connection(std::function<void(connection&)> task) {
  post_([this, task = std::move(task)] {
    const auto now = connections_;  // A connection may leave meanwhile.
    for (connection* one : now)
      if (connections_.contains(one)) task(*one);
  });
}

void gateway::adopt(boost::asio::ip::tcp::socket socket, connection_slot slot) {
  boost::asio::post(context_, [this, client = std::move(socket), place = std::move(slot)]() mutable {
    start_http(*this, std::move(client), std::move(place));
  });
}

}  // namespace troupe::net
