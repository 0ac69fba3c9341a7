#include "engine/admission.hpp"

#include <algorithm>
#include <unordered_map>

#include "actors/hand_over.hpp"
#include "actors/stages.hpp"

namespace troupe::actors {
namespace {

constexpr std::uint64_t usual_answer_tokens = 256;
constexpr std::uint64_t bytes_per_token = 4;

/// What a template may write of a value: messages, tools, documents. Its depth was bounded when it was parsed.
std::uint64_t text_bytes(const boost::json::value& value) {
  constexpr std::uint64_t punctuation = 4;
  std::uint64_t bytes = punctuation;
  if (const auto* text = value.if_string()) bytes += text->size();
  if (const auto* list = value.if_array())
    for (const auto& item : *list) bytes += text_bytes(item);
  if (const auto* object = value.if_object())
    for (const auto& member : *object) bytes += member.key().size() + text_bytes(member.value());
  return bytes;
}

/// Prompt and answers, before the prompt is tokenized: a text's bytes are a good guess.
engine::demand demand_of(const generation_request& request, std::uint32_t max_context) {
  std::uint64_t prompt = 0;
  if (const auto* text = std::get_if<std::string>(&request.prompt)) {
    prompt = text->size() / bytes_per_token + 1;
  } else if (const auto* ids = std::get_if<std::vector<token_id>>(&request.prompt)) {
    prompt = ids->size();
  } else {
    prompt = 64;  // the template's own words
    for (const auto& member : std::get<chat_prompt>(request.prompt).variables)
      prompt += text_bytes(member.value()) / bytes_per_token;
  }
  // More than the context is refused once the prompt is known, however full the server is.
  const std::uint64_t answer = std::min<std::uint64_t>(request.max_tokens.value_or(usual_answer_tokens), max_context);
  const std::uint64_t answers = std::max<std::uint32_t>(1, request.n);
  return {answers, std::max<std::uint64_t>(1, (prompt + answer) * answers)};
}

}  // namespace

struct admission_state {
  static inline const char* name = "admission";
  std::unique_ptr<engine::admission_policy> policy;
  std::unordered_map<const request_context*, engine::demand> inside;  ///< What the policy counts.
  bool recounted = false;
};

namespace {

/// What an earlier life let in is still inside. Done at the first message: from then on every end is reported to this
/// life, so that each request is counted in and out once.
void recount(admission_state& state, const house& shared) {
  if (std::exchange(state.recounted, true)) return;
  for (const auto& context : shared.requests.all()) {
    if (!context->admitted || context->ended()) continue;
    const auto demand = demand_of(context->request, shared.max_context);
    state.policy->enter(demand);
    state.inside.emplace(context.get(), demand);
  }
}

admission_actor::behavior_type run_admission(admission_actor::stateful_pointer<admission_state> self,
                                             house_ptr shared) {
  log_exceptions(self);
  const auto& limits = shared->settings.limits;
  self->state.policy = std::make_unique<engine::admission_policy>(
      engine::admission_limits{limits.max_queued_requests, limits.max_queued_tokens});
  return {
      [=](enter_atom, const request_ptr& context, ticket_ptr& entered) {
        const ticket_ptr held = std::move(entered);
        held->begin();
        recount(self->state, *shared);
        const work_mark mark(*context, hop::admission);
        const steady_time now = shared->clock();
        if (!still_wanted(*context, "admission", now)) return;
        auto& policy = *self->state.policy;
        const auto demand = demand_of(context->request, shared->max_context);
        auto& call = *context->request.call;
        if (!self->state.inside.contains(context.get())) {  // else by an earlier life
          const engine::demand whole{demand.answers * call.prompts, demand.tokens * call.prompts};
          if (!call.admitted && !policy.fits(whole))
            return context->fail(
                {error_kind::overloaded, "the server is full; come back when Retry-After says", "admission"},
                policy.retry_after(whole, now));
          policy.enter(demand);
          self->state.inside.emplace(context.get(), demand);
        }
        call.admitted = true;
        context->admitted = true;
        const bool cached =
            shared->settings.cache.enabled && (context->request.use_cache || context->request.store_in_cache);
        hand_over(*shared, context, cached ? hop::memory_cache : hop::preparer);
      },
      [=](ended_atom, const request_ptr& context) {
        recount(self->state, *shared);
        const auto it = self->state.inside.find(context.get());
        if (it == self->state.inside.end()) return;
        self->state.policy->leave(it->second, shared->clock());
        self->state.inside.erase(it);
      },
  };
}

}  // namespace

admission_actor spawn_admission(caf::actor_system& system, const house_ptr& shared) {
  return system.spawn(run_admission, shared);
}

}  // namespace troupe::actors
