#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>

#include "base/cancel.hpp"
#include "base/result.hpp"

namespace troupe::engine {

/// Measures how fast work leaves, so that a refused client can be told honestly when to come back.
class drain_rate {
 public:
  explicit drain_rate(std::chrono::seconds window = std::chrono::seconds(30)) : window_(window) {}
  void left(steady_time now, std::uint64_t units);
  /// Units per second over the window, 0 when nothing left in it.
  double per_second(steady_time now) const;
  /// How long until `units` more have left, in whole seconds from 1 to 60. While nothing left in the window, the only
  /// measure is how long it has been asked for in vain: it will take at least as long again.
  std::chrono::seconds wait_for(double units, steady_time now);

 private:
  struct departure {
    steady_time at;
    std::uint64_t units;
  };
  std::chrono::seconds window_;
  std::deque<departure> departures_;
  std::optional<steady_time> asked_;  ///< First asked since the last departure.
};

/// What a request is, or several are, to admission.
struct demand {
  std::uint64_t answers = 0;  ///< A request's n: each is a sequence.
  std::uint64_t tokens = 0;   ///< Of prompts and answers, estimated.
};

struct admission_limits {
  std::uint64_t answers = 512;     ///< Admitted and not yet ended.
  std::uint64_t tokens = 1 << 20;  ///< Theirs.
};

/// Bounds what is inside. Work that was admitted stays admitted, whatever happens to it later. One owner, one thread.
class admission_policy {
 public:
  explicit admission_policy(admission_limits limits) : limits_(limits) {}

  /// Whether there is room for all of a call. What is larger than the whole bound fits when nothing else is there.
  bool fits(demand whole) const;
  /// Counts a request of a call that fitted, or of one that is inside when the count begins anew.
  void enter(demand one);
  void leave(demand one, steady_time now);
  /// How long one that does not fit should stay away: at least one second.
  std::chrono::seconds retry_after(demand whole, steady_time now);

 private:
  admission_limits limits_;
  demand inside_;
  drain_rate rate_;
};

}  // namespace troupe::engine
