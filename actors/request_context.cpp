#include "actors/request_context.hpp"

#include <utility>

namespace troupe::actors {

static_assert(std::atomic<whereabouts>::is_always_lock_free);

const char* to_string(hop stage) {
  switch (stage) {
    case hop::none:
      return "none";
    case hop::gateway:
      return "gateway";
    case hop::admission:
      return "admission";
    case hop::memory_cache:
      return "memory_cache";
    case hop::preparer:
      return "preparer";
    case hop::batch_collector:
      return "batch_collector";
    case hop::dispatcher:
      return "dispatcher";
  }
  return "unknown";
}

work_mark::~work_mark() {
  if (std::uncaught_exceptions() != exceptions_) return;
  hop mine = stage_;
  context_.in_work.compare_exchange_strong(mine, hop::none);  // the next stage may have begun
}

namespace {

std::uint64_t size_of(const std::vector<token_detail>& tokens) {
  std::uint64_t bytes = 0;
  for (const auto& token : tokens)
    bytes += sizeof token + token.text.size() + token.bytes.size() + token.top.size() * sizeof token.top.front();
  return bytes;
}

/// Roughly the memory that an event takes.
std::uint64_t size_of(const generation_event& event) {
  std::uint64_t bytes = sizeof event;
  if (const auto* start = std::get_if<generation_started>(&event))
    bytes += start->prompt_text.size() + start->prompt_ids.size() * sizeof(token_id) + size_of(start->prompt_details);
  if (const auto* delta = std::get_if<generation_delta>(&event)) bytes += delta->text.size() + size_of(delta->tokens);
  return bytes;
}

}  // namespace

bool request_context::repeats(const generation_event& event) {
  if (std::holds_alternative<generation_started>(event)) return std::exchange(started_, true);
  const auto* delta = std::get_if<generation_delta>(&event);
  const auto* finished = std::get_if<generation_finished>(&event);
  if (delta == nullptr && finished == nullptr) return false;
  const std::uint32_t choice = delta != nullptr ? delta->choice : finished->choice;
  if (choice >= sent_.size()) {
    sent_.resize(choice + 1);
    repeat_.resize(choice + 1);
  }
  if (repeat_[choice] == 0) return ++sent_[choice], false;
  --repeat_[choice];
  return true;
}

void request_context::begin_again() {
  const std::lock_guard lock(emitting_);
  repeat_ = sent_;
}

bool request_context::record_events(std::uint64_t bytes) {
  const std::lock_guard lock(emitting_);
  room_ = bytes;
  return recording_ = !started_;
}

void request_context::record(const generation_event& event) {
  const std::uint64_t size = size_of(event);
  if (size > room_) {
    recording_ = false;
    recorded_ = {};
    return;
  }
  room_ -= size;
  recorded_.push_back(event);
}

void request_context::emit(generation_event event) {
  const std::lock_guard lock(emitting_);
  if (ended_.load(std::memory_order_relaxed)) return;
  if (repeats(event)) return;
  if (recording_) record(event);
  sink_(std::move(event));
}

void request_context::fail(error why, std::optional<std::chrono::seconds> retry_after) {
  std::exception_ptr thrown;
  {
    const std::lock_guard lock(emitting_);
    if (ended_.exchange(true, std::memory_order_acq_rel)) return;
    failure = why;
    thrown = send_last(generation_failed{std::move(why), retry_after});
  }
  on_end_(*this);
  if (thrown) std::rethrow_exception(thrown);
}

void request_context::finish(generation_done done) {
  std::exception_ptr thrown;
  {
    const std::lock_guard lock(emitting_);
    if (ended_.exchange(true, std::memory_order_acq_rel)) return;
    if (recording_) record(done);
    thrown = send_last(done);
  }
  on_end_(*this);
  if (thrown) std::rethrow_exception(thrown);
}

std::exception_ptr request_context::send_last(generation_event event) try {
  sink_(std::move(event));
  return nullptr;
} catch (...) {
  return std::current_exception();
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
