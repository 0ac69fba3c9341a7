#pragma once

#include <atomic>
#include <latch>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages.hpp"
#include "actors/metrics.hpp"
#include "actors/request_table.hpp"
#include "engine/expert_stats.hpp"

namespace troupe::actors {

/// A stage's present handle, how many times that stage was started, and whether it lives as far as is known.
template <class Handle>
struct post {
  Handle handle;
  std::uint32_t life = 0;
  bool alive = false;
};

/// What all stages of one service share: the settings, the model, the stages' credits and the present handle of each
/// stage. Stages look a handle up for each message, since the supervisor puts a new one in place of a dead one. Any
/// thread may call any member; the plain members are set before the first actor starts, and never after.
class house {
 public:
  house(const config::settings& configured, clock_function now);

  const config::settings settings;
  const clock_function clock;
  metrics measured;

  request_table requests;

  // Set when the model is loaded.
  std::unique_ptr<model_metrics> model_measured;
  std::shared_ptr<const model::opened_model> model;
  std::shared_ptr<engine::backend> backend;
  std::string precision;  ///< What the backend computes in.
  std::uint32_t max_context = 0;

  // Credits, in the order of a request's way.
  std::shared_ptr<stage> gateway_stage, admission_stage, cache_stage;
  std::vector<std::shared_ptr<stage>> preparer_stages;  ///< One for each: the one that hangs is seen and passed over.
  std::shared_ptr<stage> collector_stage, executor_stage, dispatcher_stage, loader_stage;
  std::vector<std::shared_ptr<stage>> stages() const;

  template <class Handle>
  post<Handle> at(const post<Handle> house::*which) const {
    const std::lock_guard lock(handles_);
    return this->*which;
  }
  template <class Handle>
  Handle get(const post<Handle> house::*which) const {
    return at(which).handle;
  }
  template <class Handle>
  void put(post<Handle> house::*which, Handle handle) {
    const std::lock_guard lock(handles_);
    auto& place = this->*which;
    place = {std::move(handle), place.life + 1, true};
  }
  template <class Handle>
  void died(post<Handle> house::*which) {
    const std::lock_guard lock(handles_);
    (this->*which).alive = false;
  }
  /// Which preparer is next: of those that live, one with the least to do.
  std::uint8_t next_preparer() const;
  post<preparer_actor> preparer(std::size_t index) const;
  void put_preparer(std::size_t index, preparer_actor handle);
  void preparer_died(std::size_t index);
  /// Whether the stage that a request was handed to has died since.
  bool lost(const whereabouts& at) const;
  /// Forgets all handles, so that actors without other owners can end.
  void clear_handles();

  /// Counted down once every stage has its handle: messages before that would have nowhere to go.
  std::latch stages_started{1};
  std::optional<error> start_failure;  ///< Written before `stages_started`.

  post<gateway_actor> gateway;
  post<admission_actor> admission;
  post<memory_cache_actor> memory_cache;
  post<batch_collector_actor> batch_collector;
  post<executor_actor> executor;
  post<dispatcher_actor> dispatcher;
  post<expert_loader_actor> expert_loader;

  /// Routing counts, added by the collector and read by whoever asks.
  void count_experts(std::span<const std::uint32_t> step);
  void show_residency();  ///< In the metrics.
  expert_report experts() const;
  std::atomic<std::size_t> experts_to_load{0};
  std::atomic<std::size_t> experts_loaded{0};

 private:
  mutable std::mutex handles_;
  std::vector<post<preparer_actor>> preparers_;
  mutable std::mutex counts_;
  std::unique_ptr<engine::expert_stats> stats_;
};
using house_ptr = std::shared_ptr<house>;

}  // namespace troupe::actors
