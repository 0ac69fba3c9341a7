#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"

/// The one interface that every compute backend implements: it maps pages and experts to memory and computes a step; it
/// makes no policy. A row's result depends on its sequence alone, whatever else is in the step (DESIGN rule 4).
namespace troupe::engine {

inline constexpr std::uint32_t page_tokens = 16;  ///< Positions held by one KV page.

enum class precision { fp32, bf16, int8, int4 };
std::string_view to_string(precision p);

/// What one sequence adds to a step: `tokens` at positions first_position, first_position + 1, ... Keys and values of
/// earlier positions are already in `pages`; the step writes those of its own tokens.
struct step_sequence {
  std::span<const token_id> tokens;  ///< One for decode, many for a chunk of prefill; ids below the vocabulary size.
  std::uint32_t first_position = 0;
  std::uint32_t prompt_tokens = 0;        ///< Length of the whole prompt: dynamic RoPE's base depends on it.
  std::span<const page_index> pages;      ///< Covers positions [0, first_position + tokens.size()).
  std::span<const std::uint32_t> wanted;  ///< Ascending indices into `tokens` whose next-token logits are wanted.
};

struct step_output {
  std::vector<float> logits;  ///< [wanted rows of all sequences in order, vocab]
  /// Tokens routed in this step: [layers, experts]; empty for a dense model.
  std::vector<std::uint32_t> expert_tokens;
};

struct expert_totals {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
};

/// Who computes. `step` is called by one thread at a time. The expert calls are for any thread, also during a step.
class backend {
 public:
  virtual ~backend() = default;

  /// Computes one step. Loads missing experts itself (a demand load). On error nothing of the batch may be used, and
  /// the caller recomputes the sequences from their tokens. `output` is reused between calls to save allocations.
  virtual result<void> step(std::span<const step_sequence> batch, step_output& output) = 0;

  virtual std::uint32_t page_count() const = 0;  ///< KV pages; valid page indices are [0, page_count).

  /// Brings an expert's weights into compute layout; no effect when it is there. Idempotent.
  virtual result<void> load_expert(expert_id id) = 0;
  /// Frees an expert's memory; no effect when absent. Never frees what a running step uses.
  virtual void unload_expert(expert_id id) = 0;
  virtual bool expert_resident(expert_id id) const = 0;
  virtual std::uint64_t expert_bytes(expert_id id) const = 0;  ///< Memory that the expert takes when resident.
  virtual expert_totals resident_experts() const = 0;          ///< However they came to be loaded.

  virtual std::string description() const = 0;  ///< For people: "cpu: avx2, 2 threads, int8".
};

struct backend_options {
  engine::precision precision = precision::int8;
  std::uint32_t kv_pages = 0;  ///< > 0
  std::uint32_t threads = 0;   ///< 0: one per core.
};

}  // namespace troupe::engine
