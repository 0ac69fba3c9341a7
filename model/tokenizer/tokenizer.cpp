#include "model/tokenizer/tokenizer.hpp"

#include "base/json/utf8.hpp"
#include "model/tokenizer/parts.hpp"

namespace troupe::model {

tokenizer::tokenizer(std::unique_ptr<parts> p) : parts_(std::move(p)) {}
tokenizer::~tokenizer() = default;

std::vector<token_id> tokenizer::encode(std::string_view text, bool add_special, special_tokens special) const {
  const bool parse = special == special_tokens::parse;
  std::vector<token_id> ids;
  if (valid_utf8_prefix(text) == text.size())
    ids = parts_->encode(text, parse, nullptr);
  else
    ids = parts_->encode(to_valid_utf8(std::string(text)), parse, nullptr);
  return run(parts_->post_processors, std::move(ids), add_special);
}

std::vector<token_id> tokenizer::encode_spans(std::span<const prompt_span> spans, bool add_special) const {
  std::string text;
  std::vector<text_range> user;
  for (const auto& span : spans) {
    const auto begin = text.size();
    text += to_valid_utf8(std::string(span.text));
    if (span.from_user && begin != text.size()) user.push_back({begin, text.size()});
  }
  return run(parts_->post_processors, parts_->encode(text, true, &user), add_special);
}

std::string tokenizer::decode(std::span<const token_id> ids, bool skip_special) const {
  std::string out;
  decoding state(parts_->decoders);
  for (const auto id : ids)
    if (const auto text = parts_->decoded_text(id, skip_special)) state.push(*text, out);
  state.finish(out);
  return out;
}

std::size_t tokenizer::vocab_size() const { return parts_->span(); }
std::string_view tokenizer::token_text(token_id id) const { return parts_->text(id); }
std::string tokenizer::token_bytes(token_id id) const {
  const auto text = parts_->decoded_text(id, false);
  return text ? bytes_of(parts_->decoders, *text) : std::string();
}
std::optional<token_id> tokenizer::id_of(std::string_view token) const { return parts_->find(token); }
bool tokenizer::is_special(token_id id) const {
  return parts_->has(id) && parts_->special[static_cast<std::size_t>(id)];
}
std::optional<token_id> tokenizer::bos() const { return parts_->bos; }
std::optional<token_id> tokenizer::eos() const { return parts_->eos; }

}  // namespace troupe::model
