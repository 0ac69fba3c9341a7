#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model/tokenizer/regex.hpp"
#include "model/tokenizer/unicode.hpp"

/// The first step of tokenization: rewriting the text between added tokens ("normalizer" of tokenizer.json). A chain of
/// small steps, each a value.
namespace troupe::model {

/// What Replace and Split look for: a text, or an expression.
using pattern = std::variant<std::string, regex>;
/// All matches of either kind, from left to right. An empty text matches nowhere.
void find_all(const pattern& wanted, std::string_view text, std::vector<text_range>& out);

struct unicode_form {
  unicode::form to;
};
struct lowercase_step {};
struct replace_step {
  pattern wanted;
  std::string content;
};
struct prepend_step {
  std::string prefix;  ///< Set before every text that is not empty.
};
struct strip_step {
  bool left, right;  ///< Which ends lose their white space.
};
struct byte_level_step {};  ///< Bytes become characters of the byte alphabet.

using normalizer = std::variant<unicode_form, lowercase_step, replace_step, prepend_step, strip_step, byte_level_step>;

/// `text` after one step, and after the whole chain.
std::string run(const normalizer& step, std::string text);
std::string run(const std::vector<normalizer>& chain, std::string text);

std::string replace_all(const pattern& wanted, std::string_view content, std::string_view text);

}  // namespace troupe::model
