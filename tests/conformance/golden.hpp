#pragma once

#include <cstddef>
#include <filesystem>
#include <iosfwd>
#include <string>
#include <vector>

#include "base/ids.hpp"

/// The reference data that tools/make_golden.py wrote: tiny models, and what transformers computes with them in fp32.
namespace troupe::conformance {

struct golden_prompt {
  std::vector<token_id> ids;
  std::vector<token_id> continuation;  ///< Greedy.
  std::vector<float> logits;           ///< [ids.size(), vocab]; rounded to 2^-18.
};

struct golden_model {
  std::string name;
  std::string architecture;
  std::string features;
  std::string file;  ///< "safetensors BF16", "GGUF Q4_K, Q5_K, Q6_K"
  std::filesystem::path path;
  std::size_t vocab = 0;
  std::vector<golden_prompt> prompts;
};

/// How GoogleTest shows a model.
void PrintTo(const golden_model& model, std::ostream* out);

/// Every model of tests/data/models/index.json, logits not yet read. Throws std::runtime_error on data that is not
/// there or not as the script writes it: a broken checkout, not a test result.
std::vector<golden_model> golden_models();

/// Fills in the prompts' logits.
void read_logits(golden_model& model);

golden_model golden_model_named(const std::string& name);  ///< With logits.

}  // namespace troupe::conformance
