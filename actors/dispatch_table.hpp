#pragma once

#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/messages.hpp"
#include "actors/metrics.hpp"
#include "engine/text_state.hpp"

namespace troupe::actors {

/// The texts of all running answers: tokens in, clients' events out. Plain, owned by the dispatcher.
class dispatch_table {
 public:
  /// `life`: updates that were meant for another life are ignored, since what came before them is not known here.
  dispatch_table(const model::tokenizer& text, model_metrics& measured, std::uint16_t life = 0)
      : text_(text), measured_(measured), life_(life) {}

  struct stopped_choice {
    request_ptr context;
    std::uint32_t choice;
  };
  struct outcome {
    std::vector<stopped_choice> stopped;  ///< Ended by a stop string: the collector must hear of it.
    std::vector<request_ptr> complete;    ///< Ended well: the cache may keep them.
  };
  outcome take(const std::vector<choice_update>& updates);
  void forget(request_id id) { answers_.erase(id); }
  std::size_t size() const { return answers_.size(); }

 private:
  struct choice {
    std::unique_ptr<engine::text_state> text;
    bool ended = false;
    std::uint32_t tokens = 0;
  };
  struct answer {
    std::vector<choice> choices;
    bool started = false;
  };

  void take_one(const choice_update& update, outcome& out);
  void start(const request_ptr& context, answer& a, const std::vector<model::sampled_token>* scores);
  void end(const request_ptr& context, answer& a, generation_finished finished, outcome& out);
  token_detail detail_of(const model::sampled_token& token) const;

  const model::tokenizer& text_;
  model_metrics& measured_;
  std::uint16_t life_;
  std::unordered_map<request_id, answer> answers_;
};

}  // namespace troupe::actors
