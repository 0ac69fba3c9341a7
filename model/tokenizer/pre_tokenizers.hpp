#pragma once

#include <string>
#include <variant>
#include <vector>

#include "model/tokenizer/normalizers.hpp"

/// The second step of tokenization: cutting a normalized text into the pieces that the model encodes one by one
/// ("pre_tokenizer" of tokenizer.json). Most steps only cut; some rewrite the pieces as they do.
namespace troupe::model {

/// Text between added tokens and how it is cut so far. Pieces are ascending, never empty, and never overlap.
struct cut_text {
  std::string text;
  std::vector<text_range> pieces{};
  bool starts_input = false;  ///< The text before it is empty: this is where the user's input begins.
  bool as_bytes = false;      ///< The model sees the pieces through the byte alphabet (not yet written out here).
};

/// What becomes of a match and of the text between matches.
enum class split_behavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

enum class prepend_scheme { always, first, never };

struct split_pattern {
  pattern wanted;
  split_behavior behavior;
  bool invert;  ///< Matches and the text between them change roles.
};
struct split_characters {
  bool (*matches)(char32_t);
  split_behavior behavior;
};
struct byte_level_split {
  bool add_prefix_space;
  std::vector<regex> expression;  ///< GPT-2's, or none where other steps did the cutting.
};
struct metaspace_split {
  std::string replacement;
  prepend_scheme prepend;
  bool split;
};
struct word_split {};  ///< Runs of word characters and runs of other visible ones; white space is dropped.
struct fixed_length_split {
  std::size_t characters;
};

using pre_tokenizer =
    std::variant<split_pattern, split_characters, byte_level_split, metaspace_split, word_split, fixed_length_split>;

/// Applies the chain to `text`, which begins as one piece.
void run(const std::vector<pre_tokenizer>& chain, cut_text& text);

/// GPT-2's own expression, which ByteLevel uses where it is told to.
extern const std::string_view gpt2_expression;

}  // namespace troupe::model
