#include "cache/memory_tier.hpp"

namespace troupe::cache {

std::optional<hit> memory_tier::find(const std::string& key, steady_time now) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return std::nullopt;
  const auto place = found->second;
  if (now - place->stored >= limits_.ttl) {
    erase(place);
    return std::nullopt;
  }
  recent_.splice(recent_.begin(), recent_, place);
  return hit{place->value, std::chrono::duration_cast<std::chrono::seconds>(now - place->stored)};
}

void memory_tier::store(const std::string& key, answer value, steady_time now) {
  if (const auto found = entries_.find(key); found != entries_.end()) erase(found->second);
  entry fresh{key, std::move(value), now};
  const std::uint64_t size = size_of(fresh);
  if (size > limits_.bytes || limits_.entries == 0) return;
  while (!recent_.empty() && (bytes_ + size > limits_.bytes || entries_.size() >= limits_.entries))
    erase(std::prev(recent_.end()));
  recent_.push_front(std::move(fresh));
  entries_.emplace(key, recent_.begin());
  bytes_ += size;
}

void memory_tier::erase(entry_list::iterator place) {
  bytes_ -= size_of(*place);
  entries_.erase(place->key);
  recent_.erase(place);
}

}  // namespace troupe::cache
