#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/ids.hpp"
#include "model/tokenizer/normalizers.hpp"

namespace troupe::model {

/// A token that is found in the text before anything else looks at it ("added_tokens" of tokenizer.json).
struct added_token {
  token_id id = 0;
  std::string content;
  bool special = false;
  bool normalized = false;                       ///< Sought in the normalized text, in its own normalized form.
  bool single_word = false;                      ///< Only where no word character touches it.
  bool strip_left = false, strip_right = false;  ///< Takes the white space beside it along.
};

/// Text or an added token.
struct token_match {
  text_range range;
  token_id id = -1;  ///< -1: text between tokens.
};

/// Finds spellings in a text: leftmost first, the longest of those.
class spelling_finder {
 public:
  void add(std::string_view spelling, std::size_t token);

  /// Judges a spelling that was found.
  enum class verdict { take, skip, look_further };
  /// Calls `judge(token, range)` on each spelling from left to right. After `skip` the search goes on behind it, after
  /// `look_further` with shorter spellings here and then one character on. `take` is as `skip`.
  template <class Judge>
  void search(std::string_view text, Judge&& judge) const;

  bool empty() const { return nodes_ == 1; }

 private:
  std::unordered_map<std::uint64_t, std::uint32_t> edges_;  ///< (node, byte) to node.
  std::unordered_map<std::uint32_t, std::size_t> ends_;     ///< Node to the token that ends there.
  std::array<bool, 256> first_{};                           ///< Bytes that begin a spelling.
  std::uint32_t nodes_ = 1;
};

/// All added tokens of a tokenizer.
class added_tokens {
 public:
  added_tokens() = default;
  added_tokens(std::vector<added_token> tokens, const std::vector<normalizer>& chain);

  /// Whether a special token that is spelled in that range of the text may be one.
  using permission = std::function<bool(const added_token&, const text_range&)>;
  /// What happens to special tokens' spellings.
  struct policy {
    bool parse = true;                  ///< No: they stay text, and nothing else is found inside them.
    const permission* where = nullptr;  ///< Only where this says so.
  };

  /// Cuts `text` into tokens and what lies between. `normalized`: seeks those which are sought in normalized text.
  std::vector<token_match> find(std::string_view text, bool normalized, const policy& special) const;

  const std::vector<added_token>& tokens() const { return tokens_; }
  bool any_normalized_special() const { return any_normalized_special_; }

 private:
  std::vector<added_token> tokens_;
  spelling_finder raw_, normalized_;
  bool any_normalized_special_ = false;
};

}  // namespace troupe::model
