#include "net/running_call.hpp"

#include <atomic>
#include <optional>

namespace troupe::net {
namespace {

/// Names and punctuation of a chunk, and of one token's logprob entry.
constexpr std::int64_t chunk_frame_bytes = 250;
constexpr std::int64_t token_frame_bytes = 60;
constexpr std::int64_t token_id_bytes = 6;

request_id next_request_id() {
  static std::atomic<std::uint64_t> last{0};
  return {++last};
}

std::int64_t size_of(const std::vector<actors::token_detail>& tokens) {
  std::int64_t bytes = 0;
  for (const auto& token : tokens)
    if (token.logprob) bytes += token_frame_bytes * static_cast<std::int64_t>(1 + token.top.size());
  return bytes;
}

wire_error answer_too_large(std::int64_t limit, bool stream) {
  return {.status = 400,
          .code = "answer_too_large",
          .message = "the answer comes to more than " + std::to_string(limit) +
                     " bytes in one piece; ask for fewer tokens, choices or logprobs" +
                     (stream ? "" : ", or stream it")};
}

}  // namespace

running_call::running_call(generation_call& call, std::int64_t max_bytes, poster post, call_output output)
    : answer_(std::move(call.answer)),
      stream_(call.stream),
      token_ids_(call.token_ids),
      prompts_(call.requests.size()),
      choices_(call.requests.empty() ? 1 : call.requests.front().n),
      max_bytes_(max_bytes),
      post_(std::move(post)),
      output_(std::move(output)) {}

std::shared_ptr<running_call> running_call::start(const upstream& calls, generation_call call, const call_terms& terms,
                                                  poster post, call_output output) {
  std::shared_ptr<running_call> running(new running_call(call, terms.max_bytes, std::move(post), std::move(output)));
  auto requests = std::move(call.requests);
  if (running->stream_) running->window_ = terms.window;
  const auto shared = std::make_shared<actors::call_state>(static_cast<std::uint32_t>(requests.size()));
  for (actors::generation_request& request : requests) {
    request.id = next_request_id();
    request.external_id = terms.external_id;
    request.tenant = terms.tenant;
    request.deadline = terms.deadline;
    request.queue_deadline = terms.queue_deadline;
    request.call = shared;
    request.cancel = running->cancel_;
    request.window = running->window_;
    request.use_cache = request.use_cache && terms.use_cache;
    request.store_in_cache = request.store_in_cache && terms.store_in_cache;
  }
  try {
    for (std::size_t prompt = 0; prompt < requests.size(); ++prompt)
      calls.generate(std::move(requests[prompt]),
                     [running, prompt](actors::generation_event event) { running->arrive(prompt, std::move(event)); });
  } catch (...) {  // memory is short: nobody would cancel those that are on their way
    running->cancel();
    throw;
  }
  return running;
}

std::int64_t running_call::content_bytes(const actors::generation_event& event) const {
  const auto ids = [&](std::size_t count) {
    return token_ids_ ? token_id_bytes * static_cast<std::int64_t>(count) : std::int64_t{0};
  };
  if (const auto* delta = std::get_if<actors::generation_delta>(&event))
    return static_cast<std::int64_t>(delta->text.size()) + size_of(delta->tokens) + ids(delta->tokens.size());
  if (const auto* start = std::get_if<actors::generation_started>(&event))
    return choices_ * (static_cast<std::int64_t>(start->prompt_text.size()) + size_of(start->prompt_details) +
                       ids(start->prompt_ids.size()));
  return 0;
}

std::int64_t running_call::flow_cost(const actors::generation_event& event) const {
  const bool for_each = std::holds_alternative<actors::generation_started>(event);
  return chunk_frame_bytes * (for_each ? choices_ : 1) + content_bytes(event);
}

void running_call::arrive(std::size_t prompt, actors::generation_event event) {
  if (window_) window_->add(flow_cost(event));
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    first = inbox_.empty();
    inbox_.emplace_back(prompt, std::move(event));
  }
  if (first) post_([self = shared_from_this()] { self->drain(); });
}

void running_call::drain() {
  std::vector<tagged_event> events;
  {
    const std::lock_guard lock(mutex_);
    events.swap(inbox_);
  }
  // What was counted on arrival is released once, whether it reaches the client or comes after the call's end:
  // other streams may share the window.
  std::int64_t cost = 0;
  for (const auto& [prompt, event] : events) cost += flow_cost(event);
  std::vector<std::string> chunks;
  std::optional<wire_error> failure;
  for (auto& [prompt, event] : events) {
    if (over_ || failure) break;
    if (const auto* failed = std::get_if<actors::generation_failed>(&event))
      failure = to_wire(failed->failure, failed->retry_after);
    else if (too_large(event))
      failure = answer_too_large(max_bytes_, stream_);
    else
      take(prompt, std::move(event), chunks);
  }
  const bool all_done = !failure && prompts_done_ == prompts_;
  if (all_done && stream_ && !over_) answer_->end_stream(chunks);
  if (!over_ && !chunks.empty()) {
    output_.chunks(chunks, [window = window_, cost] { window->release(cost); });
  } else if (window_) {
    window_->release(cost);
  }
  if (over_) return;
  if (failure) return end(*failure);
  if (!all_done) return;
  if (!stream_) output_.whole(answer_->whole());
  const auto done = std::move(output_.done);
  finish();
  done();
}

bool running_call::too_large(const actors::generation_event& event) {
  const std::int64_t bytes = content_bytes(event);
  if (stream_) return bytes > max_bytes_;
  collected_ += bytes;
  return collected_ > max_bytes_;
}

void running_call::end(const wire_error& failure) {
  const auto failed = std::move(output_.failed);
  cancel_.cancel();
  finish();
  failed(failure);
}

void running_call::take(std::size_t prompt, actors::generation_event event, std::vector<std::string>& chunks) {
  if (const auto* start = std::get_if<actors::generation_started>(&event); start && !started_) {
    started_ = true;
    output_.started(*start);
  }
  if (std::holds_alternative<actors::generation_done>(event)) ++prompts_done_;
  if (stream_) {
    answer_->stream(prompt, event, chunks);
  } else {
    answer_->collect(prompt, std::move(event));
  }
}

void running_call::cancel() {
  cancel_.cancel();
  finish();
}

void running_call::finish() {
  over_ = true;
  output_ = {};
}

}  // namespace troupe::net
