#include "model/tokenizer/parts.hpp"
#include "model/tokenizer/tokenizer.hpp"

namespace troupe::model {

text_stream::text_stream(const tokenizer& text, bool skip_special)
    : text_(&text), skip_special_(skip_special), state_(std::make_unique<decoding>(text.parts_->decoders)) {}
text_stream::~text_stream() = default;
text_stream::text_stream(text_stream&&) noexcept = default;
text_stream& text_stream::operator=(text_stream&&) noexcept = default;

std::string text_stream::push(token_id id) {
  std::string out;
  if (const auto text = text_->parts_->decoded_text(id, skip_special_)) state_->push(*text, out);
  return out;
}

std::string text_stream::finish() {
  std::string out;
  state_->finish(out);
  return out;
}

}  // namespace troupe::model
