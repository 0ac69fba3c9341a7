#pragma once

#include <functional>
#include <vector>

#include "model/tokenizer/decoders.hpp"
#include "model/tokenizer/json_fields.hpp"
#include "model/tokenizer/normalizers.hpp"
#include "model/tokenizer/post_processors.hpp"
#include "model/tokenizer/pre_tokenizers.hpp"

/// The chains of tokenizer.json. Each function appends what `from` describes; null describes nothing. Errors are left
/// in the field's document.
namespace troupe::model {

void read_normalizers(const json_field& from, std::vector<normalizer>& out);
void read_pre_tokenizers(const json_field& from, std::vector<pre_tokenizer>& out);
void read_decoders(const json_field& from, std::vector<decoder>& out);
/// `known` says whether an id is a token.
void read_post_processors(const json_field& from, const std::function<bool(token_id)>& known,
                          std::vector<post_template>& out);

}  // namespace troupe::model
