#pragma once

#include <vector>

#include "base/ids.hpp"

/// The last step of tokenization: putting special tokens around the text's ("post_processor" of tokenizer.json).
namespace troupe::model {

/// The encoded text, or special tokens.
struct template_part {
  bool text = false;
  std::vector<token_id> special;
};
/// What a single text becomes, such as BOS, text, EOS.
using post_template = std::vector<template_part>;

/// Most parts of one template, and most tokens of one part.
inline constexpr std::size_t max_template_parts = 64;

/// `ids` after all templates; without their special tokens unless `add_special`.
std::vector<token_id> run(const std::vector<post_template>& chain, std::vector<token_id> ids, bool add_special);

}  // namespace troupe::model
