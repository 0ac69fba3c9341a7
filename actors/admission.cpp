#include "engine/admission.hpp"

#include <algorithm>

#include "actors/stages.hpp"

namespace troupe::actors {
namespace {

constexpr std::uint64_t usual_answer_tokens = 256;
constexpr std::uint64_t bytes_per_token = 4;

/// Prompt and answer in tokens, before the prompt is tokenized: a text's bytes are a good guess.
std::uint64_t estimated_tokens(const generation_request& request) {
  std::uint64_t prompt = 0;
  if (const auto* text = std::get_if<std::string>(&request.prompt)) {
    prompt = text->size() / bytes_per_token + 1;
  } else if (const auto* ids = std::get_if<std::vector<token_id>>(&request.prompt)) {
    prompt = ids->size();
  } else {
    prompt = 64;  // the template's own words
    const auto& variables = std::get<chat_prompt>(request.prompt).variables;
    if (const auto* messages = variables.if_contains("messages"); messages != nullptr && messages->is_array())
      for (const auto& message : messages->get_array())
        if (const auto* object = message.if_object())
          for (const auto& member : *object)
            if (member.value().is_string()) prompt += member.value().get_string().size() / bytes_per_token + 1;
  }
  const std::uint64_t answer = request.max_tokens ? *request.max_tokens : usual_answer_tokens;
  return std::max<std::uint64_t>(1, (prompt + answer) * std::max<std::uint32_t>(1, request.n));
}

}  // namespace

struct admission_state {
  static inline const char* name = "admission";
  std::unique_ptr<engine::admission_policy> policy;
};

namespace {

admission_actor::behavior_type run_admission(admission_actor::stateful_pointer<admission_state> self,
                                             house_ptr shared) {
  const auto& limits = shared->settings.limits;
  self->state.policy = std::make_unique<engine::admission_policy>(
      engine::admission_limits{limits.max_queued_requests, limits.max_queued_tokens});
  return {
      [=](enter_atom, const request_ptr& context, ticket_ptr& entered) {
        const ticket_ptr held = std::move(entered);
        held->begin();
        const steady_time now = shared->clock();
        if (!still_wanted(*context, "admission", now)) return;
        auto& policy = *self->state.policy;
        const std::uint64_t tokens = estimated_tokens(context->request);
        auto& call = *context->request.call;
        if (call.admitted) {
          policy.enter_with_others(tokens);
        } else if (policy.enter(tokens)) {
          call.admitted = true;
        } else {
          return context->fail(
              {error_kind::overloaded, "the server is full; come back when Retry-After says", "admission"},
              policy.retry_after(tokens, now));
        }
        context->admitted_tokens = tokens;
        const bool cached =
            shared->settings.cache.enabled && (context->request.use_cache || context->request.store_in_cache);
        if (cached) {
          context->at = "memory_cache";
          self->send(shared->get(&house::memory_cache), look_up_atom::value, context,
                     enter_admitted(shared->cache_stage));
          return;
        }
        context->at = "preparer";
        self->send(shared->next_preparer(), prepare_atom::value, context, enter_admitted(shared->preparer_stage));
      },
      [=](ended_atom, const request_ptr& context) {
        if (const std::uint64_t tokens = context->admitted_tokens.exchange(0); tokens != 0)
          self->state.policy->leave(tokens, shared->clock());
      },
  };
}

}  // namespace

admission_actor spawn_admission(caf::actor_system& system, const house_ptr& shared) {
  return system.spawn(run_admission, shared);
}

}  // namespace troupe::actors
