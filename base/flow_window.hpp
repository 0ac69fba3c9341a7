#pragma once

#include <atomic>
#include <cstdint>

namespace troupe {

/// Bounds what was produced for a client and not yet taken by it. The producer adds, the consumer releases, and whoever
/// schedules the producer pauses it while the window is full. Any thread may call any member.
class flow_window {
 public:
  explicit flow_window(std::int64_t capacity) : capacity_(capacity) {}
  void add(std::int64_t bytes) { held_.fetch_add(bytes, std::memory_order_relaxed); }
  void release(std::int64_t bytes) { held_.fetch_sub(bytes, std::memory_order_relaxed); }
  bool full() const { return held_.load(std::memory_order_relaxed) >= capacity_; }
  std::int64_t held() const { return held_.load(std::memory_order_relaxed); }

 private:
  const std::int64_t capacity_;
  std::atomic<std::int64_t> held_{0};
};

}  // namespace troupe
