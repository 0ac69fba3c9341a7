#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "net/codec/answer.hpp"
#include "net/codec/wire_error.hpp"
#include "net/http/exchange.hpp"
#include "net/upstream.hpp"

namespace troupe::net {

/// What a connection adds to a parsed call.
struct call_terms {
  std::string external_id;
  std::string tenant;
  std::int64_t max_bytes = std::numeric_limits<std::int64_t>::max();  ///< Of a whole answer, and of a stream's chunk.
  steady_time deadline = no_deadline;
  steady_time queue_deadline = no_deadline;
  std::shared_ptr<flow_window> window;  ///< Counts what a stream's client has not taken; connections may share one.
  bool use_cache = true;
  bool store_in_cache = true;
};

/// Where a call's answer goes. All are called on the connection's thread; after `done` or `failed` nothing is.
struct call_output {
  std::function<void(const actors::generation_started&)> started;  ///< Once, before anything but a failure.
  /// Streams: JSON texts in order; `written` is to be called when the client took them.
  std::function<void(const std::vector<std::string>& chunks, std::function<void()> written)> chunks;
  std::function<void(boost::json::object whole)> whole;  ///< Not streamed: once, before `done`.
  std::function<void()> done;
  std::function<void(const wire_error&)> failed;
};

/// A generation between the actors, which send events from their threads, and a connection, which takes them on its
/// own. Events that pile up are taken together. The bytes a stream's client has not yet taken are counted in the
/// requests' flow window, which pauses their sequences; one prompt's failure ends the whole call.
class running_call : public std::enable_shared_from_this<running_call> {
 public:
  /// Hands the requests to `calls`. On the connection's thread.
  static std::shared_ptr<running_call> start(const upstream& calls, generation_call call, const call_terms& terms,
                                             poster post, call_output output);

  /// The client gave up: tells the actors and sends nothing more. On the connection's thread.
  void cancel();

 private:
  using tagged_event = std::pair<std::size_t, actors::generation_event>;  ///< With the prompt's number.

  /// Takes the call's answer and leaves its requests.
  running_call(generation_call& call, std::int64_t max_bytes, poster post, call_output output);
  /// About what an event adds to an answer: each choice repeats what is told of the prompt. Any thread.
  std::int64_t content_bytes(const actors::generation_event& event) const;
  std::int64_t flow_cost(const actors::generation_event& event) const;  ///< About what it takes in a stream.
  void arrive(std::size_t prompt, actors::generation_event event);      ///< Any thread.
  void drain();
  void take(std::size_t prompt, actors::generation_event event, std::vector<std::string>& chunks);
  /// Counts an event; an answer is built on the thread that serves everybody's connections.
  bool too_large(const actors::generation_event& event);
  void end(const wire_error& failure);
  void finish();

  std::unique_ptr<answer> answer_;
  bool stream_;
  bool token_ids_;
  std::size_t prompts_;
  std::uint32_t choices_;  ///< Of each prompt.
  std::int64_t max_bytes_;
  std::int64_t collected_ = 0;  ///< Of a whole answer.
  std::size_t prompts_done_ = 0;
  bool started_ = false;
  bool over_ = false;
  cancel_token cancel_;
  std::shared_ptr<flow_window> window_;  ///< Null: not streamed.
  poster post_;
  call_output output_;

  std::mutex mutex_;
  std::vector<tagged_event> inbox_;  ///< Guarded by mutex_.
};

}  // namespace troupe::net
