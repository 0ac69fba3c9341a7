#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model/tokenizer/normalizers.hpp"

/// Tokens back to text ("decoder" of tokenizer.json). Every decoder is a small machine that takes tokens as they come
/// and gives out text as soon as it is settled, so that streaming and decoding at once are the same thing.
namespace troupe::model {

struct byte_level_decoder {};     ///< The byte alphabet back to bytes, then UTF-8; one text out of all tokens.
struct byte_fallback_decoder {};  ///< Runs of "<0x0A>" to characters; to U+FFFD each where a run is no UTF-8.
struct fuse_decoder {};           ///< One text out of all tokens, so that what follows sees it as one.
struct replace_decoder {
  pattern wanted;
  std::string content;
};
struct strip_decoder {
  char32_t content;         ///< Taken away from each token:
  std::size_t start, stop;  ///< at most so often from its beginning and its end.
};
struct metaspace_decoder {
  char32_t replacement;
  bool drop_first;  ///< The first token's are dropped, not turned into spaces.
};
struct joining_decoder {};  ///< No decoder: tokens with spaces between.

using decoder = std::variant<byte_level_decoder, byte_fallback_decoder, fuse_decoder, replace_decoder, strip_decoder,
                             metaspace_decoder, joining_decoder>;

/// A run of byte tokens is decoded as a whole, so it is held back until it ends. When it is longer than this, its
/// characters are given out as they come.
inline constexpr std::size_t max_held_byte_run = 64;

/// A chain of decoders at work on one sequence of tokens. One owner, one thread.
class decoding {
 public:
  /// `chain` must outlive this.
  explicit decoding(const std::vector<decoder>& chain);

  /// Takes the next token and appends the text that is settled now: whole characters.
  void push(std::string_view token, std::string& out);
  /// Appends what was held back; a half character becomes U+FFFD.
  void finish(std::string& out);

 private:
  /// What a decoder remembers between chunks. Which fields it uses is its own affair.
  struct stage {
    const decoder* kind;
    std::string held{};         ///< Text or bytes that wait.
    std::string run{};          ///< Bytes of a byte-fallback run.
    std::size_t tokens = 0;     ///< Tokens that ended.
    std::size_t stripped = 0;   ///< Characters taken from the current token's beginning.
    std::size_t trailing = 0;   ///< Characters at its end that may be taken away.
    bool at_beginning = true;   ///< Only stripped characters so far in this token.
    bool passing = false;       ///< This token is too long to be a byte's.
    bool run_released = false;  ///< Part of the run was given out.
  };

  void feed(std::size_t index, std::string_view chunk, std::string& out);
  void end_token(std::size_t index, std::string& out);
  void finish(std::size_t index, std::string& out);

  void release_run(stage& s, std::size_t next, bool ended, std::string& out);
  void strip_chunk(stage& s, const strip_decoder& strip, std::size_t next, std::string_view chunk, std::string& out);

  std::vector<stage> stages_;
};

/// The bytes a single token stands for, wherever it occurs.
std::string bytes_of(const std::vector<decoder>& chain, std::string_view token);

}  // namespace troupe::model
