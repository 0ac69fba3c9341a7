#include "actors/prompt_maker.hpp"
#include "actors/stages.hpp"

namespace troupe::actors {
namespace {

void serve_text_call(const house& shared, prompt_maker& maker, const text_call& call) {
  if (const auto* ids = std::get_if<std::vector<token_id>>(&call.what)) {
    auto sound = maker.tokens_of(*ids, false, false, {});
    if (sound) return call.text(shared.model->text().decode(*ids, false));
    error failure = std::move(sound).error();
    failure.place.replace(0, std::string_view("prompt").size(), "tokens");
    return call.text(std::move(failure));
  }
  const auto& request = std::get<tokenize_request>(call.what);
  if (request.cancel.cancelled()) return call.tokens(error{error_kind::cancelled, "the client went away", "preparer"});
  if (shared.clock() >= request.deadline)
    return call.tokens(error{error_kind::deadline_exceeded, "the deadline passed", "preparer"});
  call.tokens(maker.tokens_of(request.prompt, request.add_special_tokens, request.parse_special_tokens,
                              std::chrono::system_clock::now()));
}

preparer_actor::behavior_type run_preparer(preparer_actor::pointer self, house_ptr shared,
                                           std::shared_ptr<prompt_maker> maker) {
  return {
      [=](prepare_atom, const request_ptr& context, ticket_ptr& entered) {
        const ticket_ptr held = std::move(entered);
        held->begin();
        if (!still_wanted(*context, "preparer", shared->clock())) return;
        const auto& request = context->request;
        auto ids = maker->tokens_of(request.prompt, request.add_special_tokens, request.parse_special_tokens,
                                    std::chrono::system_clock::now());
        if (!ids) return context->fail(std::move(ids).error());
        auto room = maker->room_for(ids->size(), request.max_tokens);
        if (!room) return context->fail(std::move(room).error());
        context->prompt_ids = *std::move(ids);
        context->max_new_tokens = room->max_new_tokens;
        context->at = "batch_collector";
        self->send(shared->get(&house::batch_collector), add_atom::value, context, enter_admitted(shared->collector_stage));
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
  return system.spawn(run_preparer, shared, maker);
}

}  // namespace troupe::actors
