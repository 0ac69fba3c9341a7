#include "actors/request_context.hpp"

namespace troupe::actors {

void request_context::emit(generation_event event) {
  const std::lock_guard lock(emitting_);
  if (ended_.load(std::memory_order_relaxed)) return;
  if (recording_) recorded_.push_back(event);
  sink_(std::move(event));
}

void request_context::fail(error why, std::optional<std::chrono::seconds> retry_after) {
  const auto kind = why.kind;
  {
    const std::lock_guard lock(emitting_);
    if (ended_.exchange(true, std::memory_order_acq_rel)) return;
    failure = kind;
    sink_(generation_failed{std::move(why), retry_after});
  }
  on_end_(*this);
}

void request_context::finish(generation_done done) {
  {
    const std::lock_guard lock(emitting_);
    if (ended_.exchange(true, std::memory_order_acq_rel)) return;
    generated_tokens = done.completion_tokens;
    if (recording_) recorded_.emplace_back(done);
    sink_(done);
  }
  on_end_(*this);
}

bool still_wanted(request_context& context, const std::string& stage_name, steady_time now) {
  if (context.ended()) return false;
  if (context.request.cancel.cancelled()) {
    context.fail({error_kind::cancelled, "the client went away", stage_name});
    return false;
  }
  const bool late = now >= context.request.deadline;
  if (!late && (now < context.request.queue_deadline || *context.request.call->begun)) return true;
  context.fail({error_kind::deadline_exceeded,
                late ? "the deadline passed before the answer was complete" : "the request waited too long",
                late ? stage_name : "queue"});
  return false;
}

}  // namespace troupe::actors
