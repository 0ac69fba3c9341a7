#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/tokenizer/tokenizer.hpp"

namespace troupe::engine {

/// Watches growing text for stop strings and holds back whatever could still become one, so that no part of a stop
/// string is ever given out. The earliest match wins; of several at one place, the one listed first.
class stop_matcher {
 public:
  explicit stop_matcher(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  /// Takes more text and returns what is safe to give out. A stop string counts where it ends: not in text that came
  /// with `counts` false.
  std::string push(std::string_view text, bool counts = true);
  /// The text ends here: what was held back, if no stop matched.
  std::string finish();
  /// The stop that matched; text after it is ignored.
  const std::optional<std::string>& matched() const { return matched_; }

 private:
  /// Where the first stop string begins in what is held, and which it is; null: none is there.
  std::pair<std::size_t, const std::string*> first_match() const;

  std::vector<std::string> stops_;
  std::string held_;
  std::size_t uncounted_ = 0;  ///< No stop string may end in so many of the first bytes held.
  std::optional<std::string> matched_;
};

/// The text of one choice while it grows: tokens in, safe text out. One owner, one thread.
class text_state {
 public:
  text_state(const model::tokenizer& text, bool skip_special, std::vector<std::string> stops)
      : stream_(text, skip_special), stops_(std::move(stops)) {}

  /// `stops_count`: whether a stop string may end with this token.
  std::string push(token_id id, bool stops_count) { return stops_.push(stream_.push(id), stops_count); }
  std::string finish();
  const std::optional<std::string>& stopped_by() const { return stops_.matched(); }

 private:
  model::text_stream stream_;
  stop_matcher stops_;
};

}  // namespace troupe::engine
