#pragma once

#include <span>
#include <string_view>

namespace troupe::model {

/// How a family of byte-level BPE tokenizers treats text before merging, by the name in `tokenizer.ggml.pre`. GGUF
/// keeps only that name, so the rest of the family's tokenizer.json is known here.
struct gguf_family {
  std::span<const std::string_view> names;
  std::span<const std::string_view> expressions;  ///< Applied one after another; matches and gaps become pieces.
  bool single_digits = false;                     ///< Each digit a piece of its own, before the expressions.
  bool nfc = false;
  bool ignore_merges = false;
  bool begins_with_bos = false;  ///< Where the file does not say.
};

/// Null for a name that is not known.
const gguf_family* find_gguf_family(std::string_view pre);

}  // namespace troupe::model
