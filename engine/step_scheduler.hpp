#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/cancel.hpp"
#include "base/result.hpp"
#include "engine/page_pool.hpp"
#include "engine/sequence.hpp"

namespace troupe::engine {

struct scheduler_limits {
  std::uint32_t max_batch = 32;             ///< Sequences in one step.
  std::uint32_t step_tokens = 256;          ///< Rows of one step, at least max_batch.
  std::chrono::milliseconds max_wait{50};   ///< How long a first batch may wait to fill.
  std::chrono::milliseconds aging{10'000};  ///< Each such time in the queue counts as one more priority.
};

/// What a step does for one sequence.
struct step_item {
  sequence_id id;
  std::uint32_t first = 0;       ///< Position of the first token to compute.
  std::uint32_t count = 0;       ///< How many, >= 1.
  bool samples = false;          ///< The last row's logits give the next token.
  std::uint32_t score_from = 0;  ///< Prompt positions [score_from, score_to) whose logits are wanted as well.
  std::uint32_t score_to = 0;
};

enum class drop_reason { cancelled, deadline, queue_deadline };
struct dropped_sequence {
  sequence_id id;
  drop_reason reason;
  bool started = false;  ///< A step has worked on it.
};

/// Decides what each step computes: continuous batching (Orca, 2022) with chunked prefill (Sarathi, 2023). Sequences
/// that decode go first, so that no running answer waits for a long prompt; the rest of the step's token budget goes to
/// prompts, in order of priority, fairness between tenants and arrival. When pages run out, the newest sequence of the
/// lowest priority gives up its pages and is computed again later from its tokens.
///
/// A sequence whose client does not read is paused: it takes no place in the batch, and keeps its pages only until
/// another needs them.
///
/// Deterministic: time is an argument. Which sequences share a step never changes what they compute. One owner, one
/// thread.
class step_scheduler {
 public:
  step_scheduler(scheduler_limits limits, page_pool& pages) : limits_(limits), pages_(pages) {}

  /// Queues a sequence. Refused when even alone it could not get the pages for its longest course.
  result<void> add(sequence next, steady_time now);

  /// Takes out what was cancelled or is too late. Call before `plan`.
  std::vector<dropped_sequence> sweep(steady_time now);

  /// The next step; empty when there is nothing to do yet. Every item must be answered by `advance` (or all of them by
  /// `forget_computed`, when the step failed) before the next call. `only`: work on this sequence alone.
  std::vector<step_item> plan(steady_time now, std::optional<sequence_id> only = {});

  /// The item was computed.
  void advance(const step_item& item);
  /// The token drawn for a sequence that `samples`.
  void append(sequence_id id, token_id token);
  /// Ends a sequence, whatever its state; unknown ids are ignored.
  void remove(sequence_id id);
  /// All KV is lost: everything in work starts over from its tokens.
  void forget_computed();

  const sequence* find(sequence_id id) const;
  /// When `plan` may have something to do without a new event: the end of the first batch's wait, or a deadline.
  std::optional<steady_time> wake_at() const;

  /// Let in and not ended, paused ones among them.
  std::size_t running() const { return running_.size(); }
  std::size_t waiting() const { return waiting_.size(); }
  std::uint64_t preemptions() const { return preemptions_; }
  bool idle() const { return running_.empty() && waiting_.empty(); }

 private:
  using sequence_list = std::list<sequence>;

  bool still_filling(steady_time now) const;
  void admit(steady_time now, std::optional<sequence_id> only, std::uint32_t& budget, std::vector<step_item>& items);
  sequence_list::iterator next_waiting(steady_time now, std::optional<sequence_id> only);
  std::size_t unpaused() const;
  bool ensure_pages(sequence& s, std::uint32_t tokens);
  bool preempt_for(const sequence& needy);
  std::vector<sequence_list::iterator> preemptible(const sequence& needy);
  void preempt(sequence_list::iterator victim);
  bool reclaim_from_paused(std::uint32_t pages, const sequence& needy);
  void schedule(sequence& s, std::uint32_t count, std::uint32_t& budget, std::vector<step_item>& items);
  std::int64_t effective_priority(const sequence& s, steady_time now) const;
  void charge(const sequence& s, std::uint32_t tokens);
  sequence* find_running(sequence_id id);

  scheduler_limits limits_;
  page_pool& pages_;
  sequence_list running_;                                     ///< In order of admission.
  sequence_list waiting_;                                     ///< Preempted ones first, then in order of arrival.
  std::map<std::string, std::uint64_t, std::less<>> served_;  ///< Tokens given to each tenant that is present.
  std::vector<sequence_id> in_step_;
  std::uint64_t arrivals_ = 0;
  std::uint64_t preemptions_ = 0;
};

}  // namespace troupe::engine
