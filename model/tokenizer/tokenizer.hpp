#pragma once

#include <boost/json/fwd.hpp>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"

namespace troupe::model {

/// What special-token spellings in the text mean.
enum class special_tokens {
  parse,   ///< "<|im_end|>" becomes that token, as Hugging Face tokenizers do by default.
  as_text  ///< Special tokens' spellings stay ordinary text (user text inside a chat). Ordinary added tokens still
           ///< match.
};

/// A stretch of rendered prompt: text that the template wrote (special tokens are parsed) or that a user wrote (they
/// are not).
struct prompt_span {
  std::string_view text;
  bool from_user = false;
};

/// Text to token ids and back, equal to Hugging Face `tokenizers` id for id. Immutable; any thread, concurrently.
/// Encoding takes time linear in the text.
class tokenizer {
 public:
  /// From tokenizer.json's text (and tokenizer_config.json's, which may be empty: add_bos_token and the like).
  /// `place` is the file's name for messages.
  static result<std::unique_ptr<const tokenizer>> from_json(std::string_view tokenizer_json,
                                                            std::string_view tokenizer_config_json,
                                                            std::string_view place);

  /// GGUF's tokenizer.ggml.* metadata, already bounded by the file. `model`: "gpt2" or "llama"; `pre`: "llama-bpe",
  /// "qwen2", "smollm", "gpt-2", "default", ...
  struct gguf_vocabulary {
    std::string model;
    std::string pre;
    std::vector<std::string_view> tokens;
    std::vector<float> scores;
    std::vector<std::int32_t> types;  ///< 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte.
    std::vector<std::string_view> merges;
    std::optional<token_id> bos, eos, unknown;
    std::optional<bool> add_bos, add_eos, add_space_prefix;
  };
  static result<std::unique_ptr<const tokenizer>> from_gguf(const gguf_vocabulary& vocabulary, std::string_view place);

  ~tokenizer();
  tokenizer(const tokenizer&) = delete;
  tokenizer& operator=(const tokenizer&) = delete;

  /// `add_special`: run the post-processor (BOS and the like). Invalid UTF-8 is replaced by U+FFFD.
  std::vector<token_id> encode(std::string_view text, bool add_special,
                               special_tokens special = special_tokens::parse) const;

  /// A rendered chat prompt as one text: pre-tokenization sees across the seams, but no special token begins, ends or
  /// lies in text that a user wrote.
  std::vector<token_id> encode_spans(std::span<const prompt_span> spans, bool add_special) const;

  /// All tokens at once, through the decoder chain.
  std::string decode(std::span<const token_id> ids, bool skip_special) const;

  std::size_t vocab_size() const;                  ///< Ids are in [0, vocab_size).
  std::string_view token_text(token_id id) const;  ///< As in the vocabulary file: "Ġthe", "<0x0A>".
  std::string token_bytes(token_id id) const;  ///< The bytes it stands for: " the", "\n"; may be part of a character.
  std::optional<token_id> id_of(std::string_view token) const;
  bool is_special(token_id id) const;
  std::optional<token_id> bos() const;
  std::optional<token_id> eos() const;

  struct parts;  ///< What it is made of: model/tokenizer/parts.hpp.

 private:
  explicit tokenizer(std::unique_ptr<parts> p);
  std::unique_ptr<parts> parts_;
  friend class text_stream;
};

class decoding;

/// Turns a growing token sequence into text, never emitting half a character: the concatenation of all pieces equals
/// `decode` of all tokens. Constant work per token. What the decoder may still change is held back: an incomplete
/// character, and a run of byte-fallback tokens ("<0xE2>") until it ends. Such a run is only held up to 64 tokens; if a
/// longer one turns out to be no UTF-8, its part that was given out by then stays, where `decode` has U+FFFD
/// throughout. One owner, one thread; not to be used after `finish`.
class text_stream {
 public:
  /// `text` must outlive this.
  text_stream(const tokenizer& text, bool skip_special);
  ~text_stream();
  text_stream(text_stream&&) noexcept;
  text_stream& operator=(text_stream&&) noexcept;

  std::string push(token_id id);  ///< New whole characters, possibly none.
  std::string finish();           ///< What is still held back; an incomplete character is U+FFFD.

 private:
  const tokenizer* text_;
  bool skip_special_;
  std::unique_ptr<decoding> state_;
};

}  // namespace troupe::model
