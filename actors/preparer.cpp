#include <stdexcept>

#include "actors/hand_over.hpp"
#include "actors/prompt_maker.hpp"
#include "actors/stages.hpp"

namespace troupe::actors {

struct preparer_state {
  static inline const char* name = "preparer";
};

namespace {

/// What goes wrong with a prompt is that request's error: trying it again would bring the same.
result<std::vector<token_id>> tokens_of(prompt_maker& maker, const prompt_input& prompt, bool add_special,
                                        bool parse_special) try {
  return maker.tokens_of(prompt, add_special, parse_special, std::chrono::system_clock::now());
} catch (const std::bad_alloc&) {
  return error{error_kind::overloaded, "not enough memory to prepare the prompt", "preparer"};
} catch (const std::exception& failure) {
  return error{error_kind::internal, std::string("the prompt cannot be prepared: ") + failure.what(), "preparer"};
}

void serve_text_call(const house& shared, prompt_maker& maker, text_call& call) {
  if (call.terms.cancel.cancelled()) return call.fail({error_kind::cancelled, "the client went away", "preparer"});
  if (shared.clock() >= call.terms.deadline)
    return call.fail({error_kind::deadline_exceeded, "the deadline passed", "preparer"});
  if (const auto* ids = std::get_if<std::vector<token_id>>(&call.what)) {
    auto sound = tokens_of(maker, *ids, false, false);
    if (sound) return call.answer(shared.model->text().decode(*ids, false));
    error failure = std::move(sound).error();
    failure.place.replace(0, std::string_view("prompt").size(), "tokens");
    return call.fail(failure);
  }
  const auto& request = std::get<tokenize_request>(call.what);
  call.answer(tokens_of(maker, request.prompt, request.add_special_tokens, request.parse_special_tokens));
}

preparer_actor::behavior_type run_preparer(preparer_actor::stateful_pointer<preparer_state> self, house_ptr shared,
                                           std::shared_ptr<prompt_maker> maker) {
  log_exceptions(self);
  return {
      [=](prepare_atom, const request_ptr& context, ticket_ptr& entered) {
        const ticket_ptr held = std::move(entered);
        held->begin();
        const work_mark mark(*context, hop::preparer);
        if (!still_wanted(*context, "preparer", shared->clock())) return;
        const auto& request = context->request;
        auto ids = tokens_of(*maker, request.prompt, request.add_special_tokens, request.parse_special_tokens);
        if (!ids) return context->fail(std::move(ids).error());
        auto room = maker->room_for(ids->size(), request.max_tokens);
        if (!room) return context->fail(std::move(room).error());
        context->prompt_ids = *std::move(ids);
        context->max_new_tokens = room->max_new_tokens;
        hand_over(*shared, context, hop::batch_collector);
      },
      [=](text_atom, const text_call_ptr& call, ticket_ptr& entered) {
        const ticket_ptr held = std::move(entered);
        held->begin();
        serve_text_call(*shared, *maker, *call);
      },
  };
}

}  // namespace

preparer_actor spawn_preparer(caf::actor_system& system, const house_ptr& shared,
                              const std::shared_ptr<prompt_maker>& maker) {
  return spawn_on_thread(system, run_preparer, shared, maker);
}

}  // namespace troupe::actors
