#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "actors/messages.hpp"
#include "actors/metrics.hpp"
#include "engine/step_scheduler.hpp"

namespace troupe::actors {

/// What the batch collector knows and decides, without an actor: requests with their choices, their sequences in the
/// scheduler, the step at work. Each call may produce updates for the dispatcher; the actor sends them.
class batch_core {
 public:
  batch_core(engine::scheduler_limits limits, std::uint32_t pages, const std::vector<token_id>& end_tokens,
             std::size_t vocabulary, model_metrics& measured);

  /// Takes a prepared request in, one sequence for each choice. Ends it at once when there is nothing to compute or no
  /// room. One that is here already begins again.
  void add(request_ptr context, ticket_ptr held, steady_time now);
  /// A stop string ended a choice.
  void stop(request_id id, std::uint32_t choice, steady_time now);
  /// Ends what is late or not wanted any more, unless a step is out.
  void sweep(steady_time now);
  /// The next step, or null. There is at most one step out.
  step_job_ptr next_step(steady_time now);
  /// The step came back.
  void step_done(const step_job& job, steady_time now);
  /// Nothing of the step may be used: its sequences are computed again, one at a time, so that the one at fault is
  /// found. It fails alone, after a few attempts: the fault may have passed.
  void step_failed(const error& why);
  /// The step did not begin: everything is computed again and nobody is suspected.
  void step_lost();

  std::vector<choice_update> take_updates() { return std::exchange(updates_, {}); }
  /// Requests that failed here: the dispatcher forgets their texts.
  std::vector<request_ptr> take_forgotten() { return std::exchange(forgotten_, {}); }

  bool step_out() const { return step_out_ != nullptr; }
  bool idle() const { return scheduler_.idle(); }
  /// Whether all that is left to do is paused by clients that do not read.
  bool waits_for_clients() const;
  std::optional<steady_time> wake_at() const { return scheduler_.wake_at(); }
  const engine::step_scheduler& scheduler() const { return scheduler_; }

 private:
  struct choice {
    sequence_id sequence;
    std::shared_ptr<model::sampler> sampler;
    bool ended = false;
    std::optional<steady_time> last_token;
  };
  struct record {
    request_ptr context;
    ticket_ptr held;
    std::uint16_t dispatcher_life = 0;
    std::vector<choice> choices;
    std::vector<model::sampled_token> scores;
    bool scores_sent = false;            ///< Or not wanted: updates need not wait for them.
    std::vector<choice_update> pending;  ///< A client hears of the prompt's scores before of any token.
    std::optional<steady_time> first_step;
    std::optional<steady_time> first_token;
  };
  struct owner {
    request_id request;
    std::uint32_t choice;
  };
  /// A sequence of a failed step. It is above suspicion once it has come as far alone.
  struct suspect {
    sequence_id id;
    std::uint32_t until;
    unsigned failures = 0;  ///< Alone in a step.
  };

  void drop(const engine::dropped_sequence& dropped);
  void fail(request_id id, error why);
  void forget(request_id id);
  void forget_ended();
  suspect& suspect_of(const step_entry& entry);
  choice_update update_for(const record& r, std::uint32_t index) const;
  void end_choice(record& r, std::uint32_t index, generation_finished end);
  void finish_if_done(request_id id, steady_time now);
  std::shared_ptr<model::sampler> make_sampler(const generation_request& request, std::span<const token_id> prompt,
                                               std::uint32_t index) const;
  void rebuild_samplers();
  std::optional<sequence_id> next_suspect();
  step_entry entry_for(const engine::step_item& item);
  void take_outcome(const step_entry& entry, const step_outcome& outcome, steady_time now);
  void take_token(record& r, std::uint32_t index, const model::sampled_token& token, steady_time now);
  std::optional<generation_finished> end_after(const record& r, std::uint32_t index, token_id token) const;
  void send_scores(record& r);
  void send(record& r, choice_update update);
  void update_gauges();

  engine::page_pool pages_;
  engine::step_scheduler scheduler_;
  std::vector<token_id> end_tokens_;
  std::size_t vocabulary_;
  model_metrics& measured_;
  std::unordered_map<request_id, record> records_;
  std::unordered_map<sequence_id, owner> owners_;
  step_job_ptr step_out_;         ///< Null: none.
  std::deque<suspect> suspects_;  ///< To be computed alone, one after the other.
  std::vector<choice_update> updates_;
  std::vector<request_ptr> forgotten_;
  std::uint64_t next_sequence_ = 1;
  std::uint64_t counted_preemptions_ = 0;
};

}  // namespace troupe::actors
