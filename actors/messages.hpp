#pragma once

#include <caf/all.hpp>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "actors/request_context.hpp"
#include "actors/stage.hpp"
#include "actors/step_job.hpp"

/// The protocols of the single-node actors. Every message about a request carries its context, which holds the id, the
/// deadline and the cancel token, and a ticket: the credit of the mailbox it is sent to. All of it stays in this
/// process.
namespace troupe::actors {

/// Text to tokens, or back, outside of a generation. Its caller is always answered: at the latest by the destructor,
/// when a preparer died with it.
struct text_call {
  std::variant<tokenize_request, std::vector<token_id>> what;
  text_terms terms;
  std::function<void(result<std::vector<token_id>>)> on_tokens;
  std::function<void(result<std::string>)> on_text;

  text_call() = default;
  text_call(const text_call&) = delete;
  text_call& operator=(const text_call&) = delete;
  ~text_call() { fail({error_kind::internal, "the stage that worked on this died", "preparer"}); }
  void answer(result<std::vector<token_id>> tokens) { std::exchange(on_tokens, nullptr)(std::move(tokens)); }
  void answer(result<std::string> text) { std::exchange(on_text, nullptr)(std::move(text)); }
  void fail(const error& why) {
    if (on_tokens) answer(result<std::vector<token_id>>(why));
    if (on_text) answer(result<std::string>(why));
  }
};
using text_call_ptr = std::shared_ptr<text_call>;

/// What a step brought for one choice of one request.
struct choice_update {
  request_ptr context;
  std::uint32_t choice = 0;
  std::uint32_t position = 0;         ///< Of the token in the answer.
  std::uint16_t dispatcher_life = 0;  ///< Of the dispatcher that this is for: another one lacks what came before.
  std::optional<model::sampled_token> token;
  bool hidden = false;  ///< The token ended the answer and is not part of its text.
  std::optional<generation_finished> end;
  std::shared_ptr<const std::vector<model::sampled_token>> prompt_scores;
};
using update_batch = std::shared_ptr<const std::vector<choice_update>>;

using submit_atom = caf::atom_constant<caf::atom("submit")>;
using ended_atom = caf::atom_constant<caf::atom("ended")>;
using lost_atom = caf::atom_constant<caf::atom("lost")>;
using enter_atom = caf::atom_constant<caf::atom("enter")>;
using look_up_atom = caf::atom_constant<caf::atom("lookup")>;
using store_atom = caf::atom_constant<caf::atom("store")>;
using prepare_atom = caf::atom_constant<caf::atom("prepare")>;
using text_atom = caf::atom_constant<caf::atom("text")>;
using add_atom = caf::atom_constant<caf::atom("add")>;
using stop_atom = caf::atom_constant<caf::atom("stop")>;
using tick_atom = caf::atom_constant<caf::atom("tick")>;
using run_atom = caf::atom_constant<caf::atom("run")>;
using done_atom = caf::atom_constant<caf::atom("done")>;
using update_atom = caf::atom_constant<caf::atom("update")>;
using forget_atom = caf::atom_constant<caf::atom("forget")>;
using load_atom = caf::atom_constant<caf::atom("load")>;
using restart_atom = caf::atom_constant<caf::atom("restart")>;

/// Where requests come in, and who watches them until they end. `lost`: a stage died and lives again, what it held is
/// to be handed over once more.
using gateway_actor = caf::typed_actor<caf::reacts_to<submit_atom, request_ptr, ticket_ptr>, caf::reacts_to<lost_atom>,
                                       caf::reacts_to<tick_atom>>;
/// Lets requests in or tells them when to come back.
using admission_actor =
    caf::typed_actor<caf::reacts_to<enter_atom, request_ptr, ticket_ptr>, caf::reacts_to<ended_atom, request_ptr>>;
/// The result cache's first tier. `tick`: clients that had no room for their kept answers may have some now.
using memory_cache_actor = caf::typed_actor<caf::reacts_to<look_up_atom, request_ptr, ticket_ptr>,
                                            caf::reacts_to<store_atom, request_ptr>, caf::reacts_to<tick_atom>>;
/// Templates and tokenizes.
using preparer_actor = caf::typed_actor<caf::reacts_to<prepare_atom, request_ptr, ticket_ptr>,
                                        caf::reacts_to<text_atom, text_call_ptr, ticket_ptr>>;
/// Owns the sequences. `stop`: a stop string ended this choice.
using batch_collector_actor =
    caf::typed_actor<caf::reacts_to<add_atom, request_ptr, ticket_ptr>,
                     caf::reacts_to<stop_atom, request_ptr, std::uint32_t>, caf::reacts_to<tick_atom>>;
/// Runs steps; an error tells that nothing of the step may be used.
using executor_actor = caf::typed_actor<caf::replies_to<run_atom, step_job_ptr>::with<done_atom>>;
/// Turns tokens into clients' events.
using dispatcher_actor =
    caf::typed_actor<caf::reacts_to<update_atom, update_batch, ticket_ptr>, caf::reacts_to<forget_atom, request_ptr>>;
/// Brings experts into memory in the background.
using expert_loader_actor = caf::typed_actor<caf::reacts_to<load_atom>>;

}  // namespace troupe::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::request_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::ticket_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::text_call_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::step_job_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::update_batch)
