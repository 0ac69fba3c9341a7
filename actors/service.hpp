#pragma once

#include <atomic>
#include <boost/json/object.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/cancel.hpp"
#include "base/flow_window.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "config/settings.hpp"
#include "engine/backend.hpp"
#include "model/model.hpp"
#include "model/sampling/sampler.hpp"

namespace prometheus {
class Registry;
}

/// The actors seen from outside: what `net/` and `app/` call. No CAF type appears here.
namespace troupe::actors {

/// A conversation for the chat template. `variables` holds what the template sees: messages, tools, documents and
/// chat_template_kwargs' members; the preparer adds bos_token, eos_token and add_generation_prompt.
struct chat_prompt {
  boost::json::object variables;
  bool add_generation_prompt = true;
};
using prompt_input = std::variant<std::string, std::vector<token_id>, chat_prompt>;

/// What the requests of one client call share: a list of prompts is let in as one, and begun as one. Any thread.
struct call_state {
  explicit call_state(std::uint32_t requests = 1) : prompts(requests) {}
  const std::uint32_t prompts;
  std::atomic<bool> admitted{false};
  std::shared_ptr<std::atomic<bool>> begun = std::make_shared<std::atomic<bool>>(false);  ///< A step has worked on it.
};

/// One prompt with n choices. A list of prompts is several of these, with one `call`.
struct generation_request {
  request_id id;
  std::string external_id;  ///< X-Request-Id, for logs.
  std::string tenant;
  steady_time deadline = no_deadline;        ///< For the whole answer.
  steady_time queue_deadline = no_deadline;  ///< Until the first step that works on its call.
  std::shared_ptr<call_state> call = std::make_shared<call_state>();
  cancel_token cancel;
  /// Null: never paused. The sink adds what it takes and releases what it has written; actors only look whether it is
  /// full.
  std::shared_ptr<flow_window> window;

  prompt_input prompt;
  bool add_special_tokens = true;
  bool parse_special_tokens = true;  ///< For text prompts; chats never parse them in user text.
  model::sampling_params sampling;
  std::optional<std::uint32_t> max_tokens;  ///< Nothing: to the end of the context. 0 scores the prompt only.
  std::vector<std::string> stop;
  std::vector<token_id> stop_token_ids;
  std::uint32_t n = 1;
  bool echo = false;                ///< Choices' text starts with the prompt.
  int prompt_logprobs = -1;         ///< Alternatives per prompt token; -1: none.
  bool skip_special_tokens = true;  ///< In the answer's text.
  bool use_cache = true;            ///< May be answered from the result cache.
  bool store_in_cache = true;
};

/// A token with what a client may want to know of it. `text` may hold U+FFFD where a token is part of a character;
/// `bytes` are exact.
struct token_detail {
  token_id id = 0;
  std::string text;
  std::string bytes;
  std::optional<float> logprob;
  struct alternative {
    token_id id;
    std::string text;
    std::string bytes;
    float logprob;
  };
  std::vector<alternative> top;
};

enum class finish_reason { stop, length };
std::string_view to_string(finish_reason reason);

/// What a sink receives, in order: started once; deltas and one finished per choice; then done. Or failed, at any
/// point, last.
struct generation_started {
  std::vector<token_id> prompt_ids;
  std::vector<token_detail>
      prompt_details;          ///< With prompt_logprobs >= 0: one per prompt token; the first has no logprob.
  std::string prompt_text;     ///< With echo.
  std::string cache = "miss";  ///< X-Cache: memory or miss.
  std::chrono::seconds cache_age{0};
};
struct generation_delta {
  std::uint32_t choice = 0;
  std::string text;                  ///< Whole characters, nothing of a stop string; may be empty while held back.
  std::vector<token_detail> tokens;  ///< What the text was made of; logprobs when asked for.
};
struct generation_finished {
  std::uint32_t choice = 0;
  finish_reason reason = finish_reason::stop;
  std::variant<std::monostate, std::string, token_id> stop_reason;  ///< The stop string or token id that ended it.
  std::uint32_t completion_tokens = 0;
};
struct generation_done {
  std::uint32_t prompt_tokens = 0;
  std::uint32_t completion_tokens = 0;
  std::uint32_t cached_tokens = 0;
};
struct generation_failed {
  troupe::error failure;
  std::optional<std::chrono::seconds> retry_after;  ///< With overloaded: from the measured drain rate, at least 1 s.
};
using generation_event =
    std::variant<generation_started, generation_delta, generation_finished, generation_done, generation_failed>;

/// Called from actor threads, one call at a time for a request; must return at once (post and go).
using event_sink = std::function<void(generation_event)>;

struct tokenize_request {
  prompt_input prompt;  ///< A string or a chat.
  bool add_special_tokens = true;
  bool parse_special_tokens = true;
};

/// How long a short call is of use.
struct text_terms {
  steady_time deadline = no_deadline;
  cancel_token cancel;
};

struct stage_health {
  std::string stage;
  bool working = false;  ///< Has work now.
  std::chrono::milliseconds since_progress{0};
  bool stalled = false;
};
struct health_report {
  enum class state_kind { loading, ready, draining, failed } state = state_kind::loading;
  bool healthy = true;            ///< No stage is stalled.
  double loading_progress = 0.0;  ///< Share of the experts that were loaded ahead; 1 when none are to be.
  std::vector<stage_health> stages;
};

struct expert_entry {
  std::uint64_t tokens = 0;  ///< Routed since start.
  double share = 0.0;        ///< Of its layer's routed tokens.
  bool resident = false;
  std::uint64_t bytes = 0;
};
struct expert_report {
  std::string precision;
  std::vector<std::vector<expert_entry>> layers;  ///< [layers][experts]; a dense layer's row is empty.
};

/// What the loader hands over: both are made on a loading thread while the port is already open.
struct loaded_model {
  std::shared_ptr<const model::opened_model> model;
  std::unique_ptr<engine::backend> backend;
  std::string precision = {};  ///< What the backend computes in: never "auto". Empty: as the settings say.
};

/// The actor system and its tree. Any thread may call any member until `stop` returns.
class service {
 public:
  /// Starts the actors and returns at once; `load` runs on a thread of its own. Until it is done, generate fails as
  /// unavailable.
  using loader = std::function<result<loaded_model>()>;
  static std::unique_ptr<service> start(const config::settings& settings, loader load);
  ~service();

  /// Blocks until the model is loaded or failed to load.
  result<void> wait_until_loaded();

  void generate(generation_request request, event_sink sink);
  void tokenize(tokenize_request request, text_terms terms, std::function<void(result<std::vector<token_id>>)> done);
  void detokenize(std::vector<token_id> ids, text_terms terms, std::function<void(result<std::string>)> done);

  const model::opened_model* model() const;  ///< Null while loading.
  std::string served_name() const;
  std::uint32_t max_context() const;  ///< 0 while loading.
  health_report health() const;       ///< Never blocks on an actor.
  expert_report experts() const;
  prometheus::Registry& metrics();

  /// Refuses new work, lets running work end until the drain limit, then fails the rest and joins all threads. A load
  /// that is under way is waited for. A second call returns at once.
  void stop();

 private:
  struct parts;
  explicit service(std::unique_ptr<parts> p);
  std::unique_ptr<parts> parts_;
};

}  // namespace troupe::actors
