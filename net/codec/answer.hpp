#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/service.hpp"
#include "base/result.hpp"
#include "net/codec/generation_fields.hpp"

namespace troupe::net {

/// What stands in every answer and every chunk of one call.
struct answer_head {
  std::string id;            ///< Without the API's prefix.
  std::int64_t created = 0;  ///< Unix seconds.
  std::string model;
};

struct token_usage {
  std::uint64_t prompt = 0;
  std::uint64_t completion = 0;
  std::uint64_t cached = 0;
};

/// Turns the events of one call (one or several prompts, each with n choices) into one API's JSON: chunk by chunk for a
/// stream, or collected and given once. Events come as the service sends them; failures are not an answer's business.
/// One owner, one thread.
class answer {
 public:
  explicit answer(answer_head head) : head_(std::move(head)) {}
  virtual ~answer() = default;

  /// Appends the chunks, each a JSON text, that an event of prompt number `prompt` makes.
  void stream(std::size_t prompt, const actors::generation_event& event, std::vector<std::string>& chunks);
  /// Appends what follows when every prompt is done: the usage, where it was asked for.
  virtual void end_stream(std::vector<std::string>& chunks) = 0;

  void collect(std::size_t prompt, actors::generation_event event);
  /// The whole answer, when every prompt is done. Takes what was collected.
  virtual boost::json::object whole() = 0;

 protected:
  using chunks = std::vector<std::string>;
  virtual void stream_started(std::size_t prompt, const actors::generation_started& event, chunks& out) = 0;
  virtual void stream_delta(std::size_t prompt, const actors::generation_delta& event, chunks& out) = 0;
  virtual void stream_finished(std::size_t prompt, const actors::generation_finished& event, chunks& out) = 0;

  struct choice_answer {
    std::string text;
    std::vector<actors::token_detail> tokens;
    actors::generation_finished end;
  };
  struct prompt_answer {
    actors::generation_started start;
    std::vector<choice_answer> choices;
  };
  const answer_head& head() const { return head_; }
  std::vector<prompt_answer>& collected() { return collected_; }
  const token_usage& usage() const { return usage_; }            ///< Of the prompts that are done.
  const token_usage& running_usage() const { return running_; }  ///< Of what was streamed so far.

 private:
  answer_head head_;
  std::vector<prompt_answer> collected_;
  token_usage usage_;
  token_usage running_;
};

/// A parsed body: one request for each prompt, and the form of the answer. The requests still lack what the connection
/// knows: ids, deadlines, cancellation.
struct generation_call {
  std::vector<actors::generation_request> requests;
  bool stream = false;
  bool token_ids = false;  ///< The answer holds its tokens' ids and, in each choice, its prompt's.
  std::unique_ptr<net::answer> answer;
};

/// One API that generates: its codec, as the table of routes and the WebSocket protocol name it.
using generation_parser = result<generation_call> (*)(const boost::json::object& body, const codec_context& context,
                                                      answer_head head);

}  // namespace troupe::net
