#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/tokenizer/added_tokens.hpp"
#include "model/tokenizer/bpe.hpp"
#include "model/tokenizer/decoders.hpp"
#include "model/tokenizer/post_processors.hpp"
#include "model/tokenizer/pre_tokenizers.hpp"
#include "model/tokenizer/tokenizer.hpp"

namespace troupe::model {

/// What a tokenizer is made of, in the order of use. A loader fills it in and then calls `finish`.
struct tokenizer::parts {
  std::vector<normalizer> normalizers;
  std::vector<pre_tokenizer> pre_tokenizers;
  vocabulary model_tokens;    ///< What the BPE model knows.
  vocabulary outside_tokens;  ///< Added tokens that it does not know.
  added_tokens added;
  std::optional<bpe> model;
  std::vector<post_template> post_processors;
  std::vector<decoder> decoders;
  std::optional<token_id> bos, eos;

  std::vector<bool> special;                         ///< By id.
  std::unordered_map<token_id, std::string> spoken;  ///< Added tokens that the decoder sees in another spelling.
  std::vector<bool> skipped;                         ///< By id: left out with `skip_special`.

  std::size_t span() const { return std::max(model_tokens.span(), outside_tokens.span()); }
  bool has(token_id id) const { return model_tokens.has(id) || outside_tokens.has(id); }
  std::string_view text(token_id id) const {
    return model_tokens.has(id) ? model_tokens.text(id) : outside_tokens.text(id);
  }
  std::optional<token_id> find(std::string_view text) const;
  /// What the decoder reads for a token: nothing for a hole, and for a special one that is to be skipped.
  std::optional<std::string_view> decoded_text(token_id id, bool skip_special) const;

  /// Takes the added tokens and builds the model. Ids of added tokens must be known already.
  void finish(std::vector<added_token> tokens, const std::vector<merge_rule>& rules, bpe::options how);

  /// Ids of one text that may hold added tokens. `user`: the ranges that a user wrote, ascending, if any did.
  std::vector<token_id> encode(std::string_view text, bool parse_special, const std::vector<text_range>* user) const;

 private:
  void encode_between(std::string_view text, bool starts_input, const added_tokens::policy& policy,
                      std::vector<token_id>& out) const;
};

}  // namespace troupe::model
