#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "model/tokenizer/piece_cache.hpp"
#include "model/tokenizer/vocabulary.hpp"

namespace troupe::model {

/// Two neighbours that may become one token. The lowest rank goes first, then the leftmost pair.
struct merge_rule {
  token_id left = 0, right = 0;
  std::uint32_t rank = 0;
  token_id merged = 0;
};

/// Rules by pair: a flat hash table, since this is where an encoder spends its time.
class merge_table {
 public:
  /// Of two rules for one pair the later counts.
  explicit merge_table(const std::vector<merge_rule>& rules);
  /// Null if the two do not merge.
  const merge_rule* find(token_id left, token_id right) const;

 private:
  static std::size_t hash(token_id left, token_id right);
  std::vector<merge_rule> slots_;  ///< Size is a power of two; `merged` is -1 where free.
};

/// Byte pair encoding (Sennrich et al. 2016) of one piece of text: characters become tokens, which merge by rank until
/// no rule applies. O(n log n) in the piece.
class bpe {
 public:
  struct options {
    std::optional<token_id> unknown{};  ///< For characters without a token; without it they vanish.
    bool fuse_unknown = false;          ///< One token for a run of such characters.
    bool byte_fallback = false;         ///< Their bytes as "<0x0A>", where the vocabulary has all of them.
    bool ignore_merges = false;         ///< A piece that is a token is that token.
    std::string continuing_prefix{};    ///< Set before each character but the first to look it up.
    std::string word_suffix{};          ///< Set after the last one.
    std::vector<bool> reserved{};       ///< By id: tokens that text never becomes by itself (special tokens).
  };
  /// `known` must outlive this.
  bpe(const vocabulary& known, std::vector<merge_rule> rules, options how);

  /// Appends the ids of a piece, valid UTF-8. `as_bytes`: it stands for its text in the byte alphabet.
  void encode(std::string_view piece, bool as_bytes, std::vector<token_id>& out) const;

 private:
  bool is_reserved(token_id id) const;
  std::vector<merge_rule> without_reserved(std::vector<merge_rule> rules) const;
  bool decorated() const;
  bool knows_bytes(std::string_view piece) const;  ///< Each byte's character is a token.
  void encode_anew(std::string_view piece, bool as_bytes, std::vector<token_id>& out) const;
  void characters(std::string_view piece, std::vector<token_id>& symbols) const;
  bool byte_tokens(std::string_view character, std::vector<token_id>& symbols) const;
  void merge_short(std::vector<token_id>& symbols, std::vector<token_id>& out) const;
  void merge_long(std::span<const token_id> symbols, std::vector<token_id>& out) const;

  const vocabulary* vocabulary_;
  options options_;
  merge_table merges_;
  std::array<token_id, 256> byte_symbol_{};    ///< By byte, its character in the byte alphabet; -1 without.
  std::array<token_id, 256> byte_fallback_{};  ///< By byte, "<0x0A>"; -1 without.
  piece_cache cache_;
};

}  // namespace troupe::model
