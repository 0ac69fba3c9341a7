#pragma once

#include <chrono>
#include <string_view>

namespace prometheus {
class Registry;
template <typename T>
class Family;
class Counter;
class Gauge;
class Histogram;
}  // namespace prometheus

namespace troupe::net {

/// Counts requests by route, method and status, with label values from fixed sets only: whatever paths clients invent,
/// the number of series stays bounded. Any thread.
class http_metrics {
 public:
  explicit http_metrics(prometheus::Registry& registry);

  void request_finished(std::string_view route, std::string_view method, unsigned status,
                        std::chrono::steady_clock::duration took);
  void connections_changed(int by);
  void websocket_streams_changed(int by);

 private:
  prometheus::Family<prometheus::Counter>& requests_;
  prometheus::Family<prometheus::Histogram>& durations_;
  prometheus::Gauge& connections_;
  prometheus::Gauge& websocket_streams_;
};

}  // namespace troupe::net
