#include "net/http_metrics.hpp"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <algorithm>
#include <array>
#include <string>

namespace troupe::net {
namespace {

std::string known_method(std::string_view method) {
  static constexpr std::array<std::string_view, 7> known{"GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH"};
  return std::find(known.begin(), known.end(), method) == known.end() ? "other" : std::string(method);
}

const prometheus::Histogram::BucketBoundaries& duration_buckets() {
  static const prometheus::Histogram::BucketBoundaries buckets{0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1,
                                                               2.5,   5,     10,   30,    60,   120, 300,  600};
  return buckets;
}

}  // namespace

http_metrics::http_metrics(prometheus::Registry& registry)
    : requests_(prometheus::BuildCounter()
                    .Name("http_requests_total")
                    .Help("Answered HTTP requests by route, method and status.")
                    .Register(registry)),
      durations_(prometheus::BuildHistogram()
                     .Name("http_request_duration_seconds")
                     .Help("From the end of a request to the end of its answer.")
                     .Register(registry)),
      connections_(
          prometheus::BuildGauge().Name("http_connections").Help("Open connections.").Register(registry).Add({})),
      websocket_streams_(prometheus::BuildGauge()
                             .Name("websocket_streams")
                             .Help("Requests in flight on WebSockets.")
                             .Register(registry)
                             .Add({})) {}

void http_metrics::request_finished(std::string_view route, std::string_view method, unsigned status,
                                    std::chrono::steady_clock::duration took) {
  requests_.Add({{"handler", std::string(route)}, {"method", known_method(method)}, {"status", std::to_string(status)}})
      .Increment();
  durations_.Add({{"handler", std::string(route)}}, duration_buckets())
      .Observe(std::chrono::duration<double>(took).count());
}

void http_metrics::connections_changed(int by) { connections_.Increment(by); }
void http_metrics::websocket_streams_changed(int by) { websocket_streams_.Increment(by); }

}  // namespace troupe::net
