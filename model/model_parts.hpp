#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/chat/chat_template.hpp"
#include "model/files/mapped_file.hpp"
#include "model/files/tensor_table.hpp"
#include "model/model.hpp"
#include "model/tokenizer/tokenizer.hpp"
#include "model/weights.hpp"

struct evp_md_ctx_st;

namespace troupe::model {

/// What an opened model holds. Filled by one of the two openers, then checked by `finish`.
struct opened_model::parts {
  std::string name;
  std::string digest;
  model_spec spec;
  generation_defaults defaults;
  std::vector<mapped_file> files;
  tensor_table tensors;
  std::optional<weight_finder> weights;
  std::unique_ptr<const tokenizer> text;
  std::unique_ptr<const chat_template> chat;  ///< Set before opening: replaces the model's own.

  /// Fills `into` from a Hugging Face folder or a GGUF file.
  static result<void> open_folder(const std::filesystem::path& folder, parts& into);
  static result<void> open_gguf(const std::filesystem::path& file, parts& into);
};

/// SHA-256 as lower-case hex over texts fed one after another, each with its length.
class digest_builder {
 public:
  digest_builder();
  ~digest_builder();
  digest_builder(const digest_builder&) = delete;
  digest_builder& operator=(const digest_builder&) = delete;
  void add(std::string_view text);
  /// A few pages spread evenly over a file's weights: fine-tunes differ from each other in nothing but these.
  void add_samples(std::span<const std::byte> weights);
  std::string finish();

 private:
  evp_md_ctx_st* context_;
};

}  // namespace troupe::model
