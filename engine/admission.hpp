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

struct admission_limits {
  std::uint32_t requests = 512;    ///< Admitted and not yet ended.
  std::uint64_t tokens = 1 << 20;  ///< Their prompts' and answers' tokens, estimated at admission.
};

/// Bounds what is inside. Work that was admitted stays admitted, whatever happens to it later. One owner, one thread.
class admission_policy {
 public:
  explicit admission_policy(admission_limits limits) : limits_(limits) {}

  /// Lets in a request of about `tokens`, or tells how long to stay away: at least one second. A request larger than
  /// the whole bound is let in when nothing else is there.
  bool enter(std::uint64_t tokens);
  /// Lets in what belongs to work that is inside already: a further prompt of an admitted call, or all of it when the
  /// count begins anew.
  void enter_with_others(std::uint64_t tokens);
  void leave(std::uint64_t tokens, steady_time now);
  std::chrono::seconds retry_after(std::uint64_t tokens, steady_time now);

  std::uint32_t requests() const { return requests_; }
  std::uint64_t tokens() const { return tokens_; }

 private:
  admission_limits limits_;
  std::uint32_t requests_ = 0;
  std::uint64_t tokens_ = 0;
  drain_rate rate_;
};

}  // namespace troupe::engine
