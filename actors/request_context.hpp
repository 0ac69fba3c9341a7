#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "actors/service.hpp"
#include "actors/stage.hpp"

namespace troupe::actors {

/// The stages on a request's way.
enum class hop : std::uint8_t { none, gateway, admission, memory_cache, preparer, batch_collector, dispatcher };
const char* to_string(hop stage);

/// Where a request is: the stage that it was handed to last, and in which life of that stage. A stage lives from its
/// start to its death; what was handed to an earlier life is lost and has to be handed over again.
struct whereabouts {
  hop stage = hop::none;
  std::uint8_t preparer = 0;          ///< Which of them.
  std::uint16_t dispatcher_life = 0;  ///< In the batch: the life of the dispatcher that knows its text.
  std::uint32_t life = 0;
};

/// A request on its way through the stages: what the client asked, where its events go, and what the stages found out.
/// The stages hand it on; only its holder of the moment changes the plain members. `emit`, `fail` and `finish` may be
/// called by any thread: the sink sees one call at a time, and nothing after the last event.
///
/// A request whose stage died is computed again from where it was lost ("Death and replay" in docs/architecture.md
/// tells who finds out and how). Its tokens are the same again, so each choice's events are too: those that went out
/// before are left out.
class request_context : public std::enable_shared_from_this<request_context> {
 public:
  /// `on_end` is called once, after the last event.
  request_context(generation_request asked, event_sink sink, steady_time now,
                  std::function<void(request_context&)> on_end)
      : request(std::move(asked)), arrived(now), sink_(std::move(sink)), on_end_(std::move(on_end)) {}

  void emit(generation_event event);
  /// Events come from the beginning again: as many as went out are to be left out.
  void begin_again();
  void fail(error failure, std::optional<std::chrono::seconds> retry_after = {});
  void finish(generation_done done);
  bool ended() const { return ended_.load(std::memory_order_acquire); }

  const generation_request request;
  const steady_time arrived;

  // Filled on the way.
  std::atomic<whereabouts> at{};
  std::atomic<hop> in_work{hop::none};  ///< The stage that works on it now, or died of it.
  unsigned deaths = 0;                  ///< Of stages that may have died of it; the gateway's.
  std::atomic<bool> admitted{false};    ///< Counted by admission.
  std::string cache_key;                ///< Empty: the answer is not kept.
  std::vector<token_id> prompt_ids;     ///< After the preparer.
  std::uint32_t max_new_tokens = 0;     ///< After the preparer.
  std::optional<error> failure;         ///< Once ended badly.

  /// Keeps all events, unless they come to more than `bytes`: then none. False when some went out already.
  bool record_events(std::uint64_t bytes);
  const std::vector<generation_event>& recorded() const { return recorded_; }

 private:
  event_sink sink_;
  std::function<void(request_context&)> on_end_;
  bool repeats(const generation_event& event);
  void record(const generation_event& event);
  /// What the sink threw: the end is reported all the same.
  std::exception_ptr send_last(generation_event event);

  std::mutex emitting_;
  bool started_ = false;
  std::vector<std::uint32_t> sent_;    ///< Events that went out, for each choice.
  std::vector<std::uint32_t> repeat_;  ///< Of those, how many are still to come again.
  std::atomic<bool> ended_{false};
  bool recording_ = false;
  std::uint64_t room_ = 0;  ///< Bytes that may still be recorded.
  std::vector<generation_event> recorded_;
};
using request_ptr = std::shared_ptr<request_context>;

/// Marks a request as worked on by a stage. An exception leaves the mark: it tells which request the stage died of.
class work_mark {
 public:
  work_mark(request_context& context, hop stage) : context_(context), stage_(stage) { context_.in_work = stage; }
  ~work_mark();
  work_mark(const work_mark&) = delete;
  work_mark& operator=(const work_mark&) = delete;

 private:
  request_context& context_;
  hop stage_;
  int exceptions_ = std::uncaught_exceptions();
};

/// Whether a stage may still work on a request. If not, the request has been ended: a deadline that passed names the
/// stage; a cancelled one is dropped silently, since nobody listens.
bool still_wanted(request_context& context, const std::string& stage_name, steady_time now);

}  // namespace troupe::actors
