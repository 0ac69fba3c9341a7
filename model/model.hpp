#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "model/spec.hpp"
#include "model/tensor.hpp"

/// A model on disk, opened: what it computes, its weights by role, its tokenizer and its chat template. Serving code
/// never learns whether it came from a Hugging Face folder or a GGUF file.
namespace troupe::model {

class tokenizer;
class chat_template;

/// What generation_config.json (or GGUF metadata) suggests when a request says nothing.
struct generation_defaults {
  std::optional<double> temperature;
  std::optional<int> top_k;
  std::optional<double> top_p;
  std::optional<double> min_p;
  std::optional<double> repetition_penalty;
  std::vector<token_id> eos;  ///< Any of these ends an answer.
};

/// Opened and fully validated: every tensor that the spec asks for exists with the right shape, lies inside its file
/// and overlaps no other. Immutable; any thread may read. Weights stay in the page cache: they are mapped, never
/// copied.
class opened_model {
 public:
  /// Whether there is a folder with config.json, or a file. What is in them, `open` tells.
  static result<void> check_path(const std::filesystem::path& path);

  /// `path`: a folder with config.json, or a .gguf file. `chat_template_file`: a Jinja template instead of the model's
  /// own, which is not even parsed then; empty: the model's own.
  static result<std::shared_ptr<const opened_model>> open(const std::filesystem::path& path,
                                                          const std::filesystem::path& chat_template_file = {});

  ~opened_model();
  opened_model(const opened_model&) = delete;
  opened_model& operator=(const opened_model&) = delete;

  const std::string& name() const;  ///< Folder or file stem: what /v1/models lists unless the operator renames it.
  /// Hex SHA-256 over the metadata (config, tokenizer, headers) and a sample of the weights: part of cache keys.
  const std::string& digest() const;
  const model_spec& spec() const;
  const generation_defaults& defaults() const;
  const tokenizer& text() const;
  const chat_template* chat() const;  ///< Null: the model has no chat template.

  /// The weight in `role`; `layer` and `expert` where the role takes them. A bias or norm that the spec switched off,
  /// or lm_head with tied embeddings, is the caller's mistake. Returns a matrix with the shape that the spec implies;
  /// experts fused in one tensor come out as slices of it.
  matrix_view weight(tensor_role role, std::uint32_t layer = 0, std::uint32_t expert = 0) const;

  std::uint64_t file_bytes() const;  ///< Size of all mapped weight files.

 private:
  struct parts;
  explicit opened_model(std::unique_ptr<parts> p);
  std::unique_ptr<parts> parts_;
};

}  // namespace troupe::model
