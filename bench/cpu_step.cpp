#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "cpu/cpu_backend.hpp"
#include "model/model.hpp"

/// cpu_step MODEL PRECISION THREADS [BATCH]: time of a prefill of 64 tokens and of decode steps after it, the shortest
/// of many short windows, so that a busy machine disturbs little, and the median of them.
namespace {

using namespace troupe;
using clock_type = std::chrono::steady_clock;

constexpr std::uint32_t prompt_tokens = 64;
constexpr std::uint32_t window_steps = 4;
constexpr std::uint32_t windows = 40;

double milliseconds(clock_type::time_point since) {
  return std::chrono::duration<double, std::milli>(clock_type::now() - since).count();
}

struct run {
  std::vector<token_id> tokens;
  std::vector<page_index> pages;
};

int fail(const error& failure) {
  std::fprintf(stderr, "%s\n", failure.to_string().c_str());
  return 1;
}

/// One step over all runs: `count` tokens each from `first` on, logits of the last.
bool step(engine::backend& backend, const std::vector<run>& runs, std::uint32_t first, std::uint32_t count,
          engine::step_output& output) {
  const std::uint32_t last = count - 1;
  std::vector<engine::step_sequence> batch;
  for (const auto& r : runs) {
    batch.push_back({.tokens = std::span(r.tokens).subspan(first, count),
                     .first_position = first,
                     .prompt_tokens = prompt_tokens,
                     .pages = r.pages,
                     .wanted = std::span(&last, 1)});
  }
  const auto stepped = backend.step(batch, output);
  if (!stepped) fail(stepped.error());
  return static_cast<bool>(stepped);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: cpu_step MODEL fp32|bf16|int8|int4 THREADS [BATCH]\n");
    return 1;
  }
  const auto opened = model::opened_model::open(argv[1]);
  if (!opened) return fail(opened.error());
  const std::uint32_t sequences = argc > 4 ? static_cast<std::uint32_t>(std::strtoul(argv[4], nullptr, 10)) : 1;
  constexpr std::uint32_t length = prompt_tokens + window_steps * windows;
  constexpr std::uint32_t pages = (length + engine::page_tokens - 1) / engine::page_tokens;
  cpu::cpu_options options;
  for (const auto p :
       {engine::precision::fp32, engine::precision::bf16, engine::precision::int8, engine::precision::int4}) {
    if (engine::to_string(p) == argv[2]) options.common.precision = p;
  }
  options.common.kv_pages = pages * sequences;
  options.common.threads = static_cast<std::uint32_t>(std::strtoul(argv[3], nullptr, 10));
  const auto began = clock_type::now();
  auto backend = cpu::make_cpu_backend(*opened, options);
  if (!backend) return fail(backend.error());
  const double packing = milliseconds(began);

  std::vector<run> runs(sequences);
  for (std::uint32_t s = 0; s < sequences; ++s) {
    for (std::uint32_t i = 0; i < length; ++i) {
      runs[s].tokens.push_back(static_cast<token_id>((i * 7919 + s * 104729 + 13) % (*opened)->spec().vocab));
    }
    for (std::uint32_t p = 0; p < pages; ++p) runs[s].pages.push_back(page_index{s * pages + p});
  }
  engine::step_output output;
  double prefill = 1e300;
  for (int round = 0; round < 8; ++round) {
    const auto start = clock_type::now();
    if (!step(**backend, runs, 0, prompt_tokens, output)) return 1;
    prefill = std::min(prefill, milliseconds(start));
  }
  std::vector<double> decode;
  for (std::uint32_t w = 0; w < windows; ++w) {
    const auto start = clock_type::now();
    for (std::uint32_t i = 0; i < window_steps; ++i) {
      if (!step(**backend, runs, prompt_tokens + w * window_steps + i, 1, output)) return 1;
    }
    decode.push_back(milliseconds(start) / window_steps);
  }
  std::sort(decode.begin(), decode.end());
  std::printf("%s, batch %u: packed in %.0f ms, prefill %.1f tokens/s, decode %.1f tokens/s, median %.1f\n",
              (*backend)->description().c_str(), sequences, packing, 1e3 * prompt_tokens * sequences / prefill,
              1e3 * sequences / decode.front(), 1e3 * sequences / decode[decode.size() / 2]);
  return 0;
}
