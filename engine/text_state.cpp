#include "engine/text_state.hpp"

#include <algorithm>

namespace troupe::engine {

std::string stop_matcher::push(std::string_view text) {
  if (matched_) return {};
  held_ += text;
  std::size_t first = std::string::npos;
  const std::string* winner = nullptr;
  for (const auto& stop : stops_) {
    const auto at = held_.find(stop);
    if (at < first) {
      first = at;
      winner = &stop;
    }
  }
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
  return out;
}

std::string stop_matcher::finish() {
  std::string out;
  if (matched_) return out;
  // Something longer was being waited for: a complete shorter stop inside what is held still counts.
  std::size_t first = std::string::npos;
  for (const auto& stop : stops_) {
    const auto at = held_.find(stop);
    if (at < first) {
      first = at;
      matched_ = stop;
    }
  }
  out = held_.substr(0, std::min(first, held_.size()));
  held_.clear();
  return out;
}

std::string text_state::finish() {
  std::string out = stops_.push(stream_.finish());
  return out + stops_.finish();
}

}  // namespace troupe::engine
