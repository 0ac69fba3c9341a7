#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/cancel.hpp"
#include "base/flow_window.hpp"
#include "base/ids.hpp"

namespace troupe::engine {

/// One choice of one prompt while the engine works on it. Its token log is all that is needed to begin again: pages are
/// a cache of what the backend computed from it.
struct sequence {
  sequence_id id;
  std::string tenant;
  int priority = 0;  ///< Higher goes first.

  std::vector<token_id> tokens;  ///< Prompt, then answer.
  std::uint32_t prompt_tokens = 0;
  std::uint32_t max_new_tokens = 0;  ///< 0: the prompt is only scored.
  bool score_prompt = false;         ///< The logits at each prompt position are wanted.

  steady_time deadline = no_deadline;
  steady_time queue_deadline = no_deadline;  ///< Until its first step, or that of another of its call.
  std::shared_ptr<std::atomic<bool>> begun;  ///< Shared by the sequences of one call; null: it is alone.
  cancel_token cancel;
  std::shared_ptr<flow_window> window;  ///< Null: never paused.

  // Kept by the scheduler.
  std::vector<page_index> pages;
  std::uint32_t computed = 0;  ///< Leading tokens whose keys and values are in `pages`.
  std::uint32_t scored = 0;    ///< Leading prompt positions whose logits were delivered.
  std::uint64_t arrival = 0;
  steady_time arrived{};
  bool started = false;  ///< A step has worked on it.

  std::uint32_t uncomputed() const { return static_cast<std::uint32_t>(tokens.size()) - computed; }
  std::uint32_t generated() const { return static_cast<std::uint32_t>(tokens.size()) - prompt_tokens; }
  bool queues() const { return !started && !(begun && begun->load(std::memory_order_relaxed)); }
  bool paused() const { return window != nullptr && window->full(); }
  bool decodes() const { return started && uncomputed() == 1 && computed >= prompt_tokens; }
};

}  // namespace troupe::engine
