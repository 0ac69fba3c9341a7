#include <cstdio>
#include <cstdlib>
#include <string>

#include "perplexity.hpp"

/// perplexity [WINDOWS]: perplexity of the default model in every precision, as the table of docs/conformance.md.
int main(int argc, char** argv) {
  using namespace troupe;
  using namespace troupe::conformance;
  const auto reference = read_perplexity_reference();
  const std::size_t windows = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : reference.losses.size();
  bool within = true;
  std::printf("| precision | tokens | perplexity | transformers fp32 | change | bound |\n|---|---|---|---|---|---|\n");
  for (const auto precision :
       {engine::precision::fp32, engine::precision::bf16, engine::precision::int8, engine::precision::int4}) {
    const auto seen = measure_perplexity(default_model(), precision, reference, windows, [](const auto& so_far) {
      std::fprintf(stderr, "\r%zu tokens: %.4f (%.4f)   ", so_far.tokens, so_far.perplexity, so_far.reference);
    });
    std::fprintf(stderr, "\r");
    if (!seen) {
      std::fprintf(stderr, "%s\n", seen.error().to_string().c_str());
      return 1;
    }
    const double bound = perplexity_bound(precision);
    std::printf("| %s | %zu | %.4f | %.4f | %+.4f %% | %.2f %% |\n", std::string(engine::to_string(precision)).c_str(),
                seen->tokens, seen->perplexity, seen->reference, 100 * seen->change(), 100 * bound);
    std::fflush(stdout);
    within = within && std::abs(seen->change()) <= bound;
  }
  return within ? 0 : 1;
}
