#pragma once

#include <list>
#include <unordered_map>

#include "cache/tier.hpp"

namespace troupe::cache {

struct memory_limits {
  std::uint64_t bytes = 64 << 20;
  std::size_t entries = 1000;
  std::chrono::milliseconds ttl{300'000};
};

/// The first tier: least recently used out first, bounded in entries and bytes, entries too old are as good as absent.
class memory_tier final : public tier {
 public:
  explicit memory_tier(memory_limits limits) : limits_(limits) {}

  std::optional<hit> find(const std::string& key, steady_time now) override;
  /// An answer larger than the whole tier is not kept.
  void store(const std::string& key, answer value, steady_time now) override;

  std::size_t entries() const { return entries_.size(); }
  std::uint64_t bytes() const { return bytes_; }

 private:
  struct entry {
    std::string key;
    answer value;
    steady_time stored;
  };
  using entry_list = std::list<entry>;

  static std::uint64_t size_of(const entry& e) { return e.key.size() + e.value->size() + sizeof(entry); }
  void erase(entry_list::iterator place);

  memory_limits limits_;
  entry_list recent_;  ///< Most recently used first.
  std::unordered_map<std::string, entry_list::iterator> entries_;
  std::uint64_t bytes_ = 0;
};

}  // namespace troupe::cache
