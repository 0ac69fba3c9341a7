#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "base/cancel.hpp"
#include "engine/admission.hpp"
#include "engine/progress.hpp"

namespace prometheus {
class Counter;
class Gauge;
class Histogram;
}  // namespace prometheus

namespace troupe::actors {

class metrics;

/// The clock of the actors: real time in the service, virtual time in tests.
using clock_function = std::function<steady_time()>;

/// What stages with this name do: the name without the number of the one among several.
std::string role_of(const std::string& stage_name);

/// A stage seen from outside its mailbox: how much may be in it, what it holds, whether it moves, and its four metrics
/// (depth, wait, service time, refusals). CAF's mailboxes are unbounded, so the bound is a credit taken before the
/// send. Any thread may call any member.
class stage {
 public:
  /// Stages of one role share their metrics. `bound`: messages in the mailbox or in
  /// work; 0: as many as come (what comes was bounded at admission).
  stage(std::string name, std::int64_t bound, metrics& registry, clock_function clock);

  const std::string& name() const { return name_; }
  const engine::progress& progress() const { return progress_; }
  void moved() { progress_.moved(clock_()); }
  std::int64_t depth() const { return progress_.depth(); }
  steady_time now() const { return clock_(); }
  /// When one that was refused may come back: once a place is free, at the rate at which messages leave.
  std::chrono::seconds retry_after();

 private:
  friend class ticket;
  friend std::shared_ptr<class ticket> enter(const std::shared_ptr<stage>& into);

  std::string name_;
  std::int64_t bound_;
  clock_function clock_;
  engine::progress progress_;
  std::mutex measuring_;
  engine::drain_rate drain_;
  prometheus::Gauge& depth_;
  prometheus::Histogram& wait_;
  prometheus::Histogram& service_;
  prometheus::Counter& refusals_;
};

/// One credit of a stage. It travels with the message and is given back when the last holder drops it: after the work,
/// on an error, or with a killed actor's mailbox.
class ticket {
 public:
  explicit ticket(std::shared_ptr<stage> in);
  ~ticket();
  ticket(const ticket&) = delete;
  ticket& operator=(const ticket&) = delete;

  void begin();  ///< Work starts: the wait ends.

 private:
  std::shared_ptr<stage> in_;
  steady_time entered_;
  steady_time begun_{};
};
using ticket_ptr = std::shared_ptr<ticket>;

/// A credit, or null when the stage is full.
ticket_ptr enter(const std::shared_ptr<stage>& into);
/// A credit for work that was admitted: its bound was admission's, and it is never refused again.
ticket_ptr enter_admitted(const std::shared_ptr<stage>& into);

}  // namespace troupe::actors
