#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/cancel.hpp"

namespace troupe::engine {

/// A stage's heartbeat: health is progress, not mere life. The stage reports work that comes, moves and leaves; anyone
/// asks, from any thread, without waiting.
class progress {
 public:
  void enter(steady_time now) {
    if (depth_.fetch_add(1, std::memory_order_acq_rel) == 0) moved(now);
  }
  void leave(steady_time now) {
    depth_.fetch_sub(1, std::memory_order_acq_rel);
    moved(now);
  }
  void moved(steady_time now) { last_.store(now.time_since_epoch().count(), std::memory_order_release); }

  std::int64_t depth() const { return depth_.load(std::memory_order_acquire); }
  std::chrono::milliseconds since(steady_time now) const {
    const steady_time last{steady_time::duration(last_.load(std::memory_order_acquire))};
    return now > last ? std::chrono::duration_cast<std::chrono::milliseconds>(now - last)
                      : std::chrono::milliseconds(0);
  }
  bool stalled(steady_time now, std::chrono::milliseconds limit) const { return depth() > 0 && since(now) > limit; }

 private:
  std::atomic<std::int64_t> depth_{0};
  std::atomic<steady_time::rep> last_{0};
};

}  // namespace troupe::engine
