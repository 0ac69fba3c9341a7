#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/service.hpp"
#include "model/chat/chat_template.hpp"
#include "model/tokenizer/tokenizer.hpp"

namespace troupe::actors {

/// Texts and their tokens, bounded in entries and bytes: the least recently used go first. Any thread.
class prompt_memo {
 public:
  static constexpr std::size_t default_bytes = 64 << 20;
  explicit prompt_memo(std::size_t entries, std::size_t bytes = default_bytes)
      : most_entries_(entries), most_bytes_(bytes) {}
  using tokens = std::shared_ptr<const std::vector<token_id>>;
  tokens find(const std::string& key);
  /// One that is larger than a sixteenth of all is not kept: it would drive out the many that are asked for again.
  void store(std::string key, tokens value);

 private:
  using entry_list = std::list<std::pair<std::string, tokens>>;
  static std::size_t size_of(const std::string& key, const tokens& value);

  std::mutex guard_;
  std::size_t most_entries_;
  std::size_t most_bytes_;
  std::size_t bytes_ = 0;
  entry_list recent_;
  std::unordered_map<std::string, entry_list::iterator> entries_;
};

/// Makes token ids of what clients send: text, ids or conversations; remembers the last texts. Any thread.
class prompt_maker {
 public:
  /// `chat` may be null. Both must outlive this.
  prompt_maker(const model::tokenizer& text, const model::chat_template* chat, std::size_t vocabulary,
               std::uint32_t max_context, std::size_t memo_entries);

  /// `add_special` wraps a chat as well, although most templates write BOS themselves. Errors are `invalid` and name
  /// the field. A text so long that it cannot fit the context is refused before it is tokenized.
  result<std::vector<token_id>> tokens_of(const prompt_input& prompt, bool add_special, bool parse_special,
                                          std::chrono::system_clock::time_point now);

  struct room {
    std::uint32_t max_new_tokens = 0;
  };
  /// How long the answer may get. Prompt and max_tokens beyond the context: an error that says all three numbers.
  result<room> room_for(std::size_t prompt_tokens, std::optional<std::uint32_t> max_tokens) const;

 private:
  result<std::vector<token_id>> tokens_of_text(const std::string& text, bool add_special, bool parse_special);
  result<std::vector<token_id>> tokens_of_chat(const chat_prompt& chat, bool add_special,
                                               std::chrono::system_clock::time_point now);
  result<void> check_length(std::size_t bytes, std::string_view field) const;

  const model::tokenizer& text_;
  const model::chat_template* chat_;
  std::size_t vocabulary_;
  std::uint32_t max_context_;
  std::size_t longest_token_ = 1;  ///< In bytes.
  prompt_memo memo_;
};

}  // namespace troupe::actors
