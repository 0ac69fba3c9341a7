#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "actors/service.hpp"
#include "actors/stage.hpp"

namespace troupe::actors {

/// A request on its way through the stages: what the client asked, where its events go, and what the stages found out.
/// The stages hand it on; only its holder of the moment changes the plain members. `emit`, `fail` and `finish` may be
/// called by any thread: the sink sees one call at a time, and nothing after the last event.
class request_context : public std::enable_shared_from_this<request_context> {
 public:
  /// `on_end` is called once, after the last event.
  request_context(generation_request asked, event_sink sink, steady_time now,
                  std::function<void(request_context&)> on_end)
      : request(std::move(asked)), arrived(now), sink_(std::move(sink)), on_end_(std::move(on_end)) {}

  void emit(generation_event event);
  void fail(error failure, std::optional<std::chrono::seconds> retry_after = {});
  void finish(generation_done done);
  bool ended() const { return ended_.load(std::memory_order_acquire); }

  const generation_request request;
  const steady_time arrived;

  // Filled on the way.
  std::atomic<const char*> at{"gateway"};         ///< The stage that holds it.
  std::atomic<std::uint64_t> admitted_tokens{0};  ///< What admission counted; 0: not admitted.
  std::string cache_key;                          ///< Empty: the answer is not kept.
  std::vector<token_id> prompt_ids;               ///< After the preparer.
  std::uint32_t max_new_tokens = 0;               ///< After the preparer.
  std::optional<error_kind> failure;              ///< Once ended badly.
  std::uint32_t generated_tokens = 0;             ///< Once ended well.

  /// All events so far, when the answer is to be kept.
  void record_events() { recording_ = true; }
  const std::vector<generation_event>& recorded() const { return recorded_; }

 private:
  event_sink sink_;
  std::function<void(request_context&)> on_end_;
  std::mutex emitting_;
  std::atomic<bool> ended_{false};
  bool recording_ = false;
  std::vector<generation_event> recorded_;
};
using request_ptr = std::shared_ptr<request_context>;

/// Whether a stage may still work on a request. If not, the request has been ended: a deadline that passed names the
/// stage; a cancelled one is dropped silently, since nobody listens.
bool still_wanted(request_context& context, const std::string& stage_name, steady_time now);

}  // namespace troupe::actors
