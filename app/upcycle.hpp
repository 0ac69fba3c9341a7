#pragma once

#include <cstdint>
#include <filesystem>

#include "base/result.hpp"
#include "model/files/tensor_writer.hpp"

namespace troupe::app {

struct upcycle_options {
  std::filesystem::path from;
  std::filesystem::path to;
  std::uint32_t experts = 8;
  std::uint32_t top_k = 2;
  std::uint64_t seed = 1;  ///< Of the routers' weights.
};

/// Sparse upcycling (Komatsuzaki et al., 2023): writes a dense Llama-style model as a Mixtral-style MoE in which every
/// expert starts as the dense FFN. Gates are renormalised over the chosen experts, so the new model computes what the
/// old one did. Weights' bytes are copied as they are, quantised or not. A GGUF file gives a GGUF file, a folder gives
/// a folder; both appear whole or not at all, and nothing that exists is overwritten but a plain file of the same name.
result<void> upcycle(const upcycle_options& options, const model::write_progress& progress);

}  // namespace troupe::app
