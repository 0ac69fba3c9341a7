#include "engine/text_state.hpp"

#include <algorithm>

namespace troupe::engine {

std::pair<std::size_t, const std::string*> stop_matcher::first_match() const {
  std::pair<std::size_t, const std::string*> first{std::string::npos, nullptr};
  for (const auto& stop : stops_) {
    const std::size_t from = uncounted_ >= stop.size() ? uncounted_ - stop.size() + 1 : 0;
    if (const auto at = held_.find(stop, from); at < first.first) first = {at, &stop};
  }
  return first;
}

std::string stop_matcher::push(std::string_view text, bool counts) {
  if (matched_) return {};
  held_ += text;
  if (!counts) uncounted_ = held_.size();
  const auto [first, winner] = first_match();
  // An earlier place may still become a match of a longer stop string: wait for it.
  std::size_t open = held_.size();
  for (const auto& stop : stops_) {
    const std::size_t longest = std::min(stop.size() - 1, held_.size());
    for (std::size_t length = longest; length > 0; --length) {
      if (!held_.ends_with(std::string_view(stop).substr(0, length))) continue;
      open = std::min(open, held_.size() - length);
      break;
    }
  }
  if (winner != nullptr && first <= open) {
    matched_ = *winner;
    std::string out = held_.substr(0, first);
    held_.clear();
    return out;
  }
  std::string out = held_.substr(0, open);
  held_.erase(0, open);
  uncounted_ -= std::min(uncounted_, open);
  return out;
}

std::string stop_matcher::finish() {
  std::string out;
  if (matched_) return out;
  // Something longer was being waited for: a complete shorter stop inside what is held still counts.
  const auto [first, winner] = first_match();
  if (winner != nullptr) matched_ = *winner;
  out = held_.substr(0, std::min(first, held_.size()));
  held_.clear();
  return out;
}

std::string text_state::finish() {
  std::string out = stops_.push(stream_.finish());
  return out + stops_.finish();
}

}  // namespace troupe::engine
