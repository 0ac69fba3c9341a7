#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/ids.hpp"

namespace troupe::engine {

/// Decides which experts stay in compute layout: a byte budget with the least recently used given up first, and the
/// order in which idle time is spent on loading. It moves nothing itself. One owner, one thread.
class expert_residency {
 public:
  /// `budget_bytes` 0: unbounded.
  explicit expert_residency(std::uint64_t budget_bytes) : budget_(budget_bytes) {}

  /// The expert is there now, or was used. Returns the experts to unload so that the budget holds again.
  std::vector<expert_id> touch(expert_id id, std::uint64_t bytes);
  void forget(expert_id id);

  bool resident(expert_id id) const { return entries_.contains(id); }
  std::uint64_t bytes() const { return bytes_; }
  std::size_t count() const { return entries_.size(); }
  bool fits(std::uint64_t more) const { return budget_ == 0 || bytes_ + more <= budget_; }

 private:
  struct entry {
    std::list<expert_id>::iterator place;
    std::uint64_t bytes;
  };
  std::uint64_t budget_;
  std::uint64_t bytes_ = 0;
  std::list<expert_id> recent_;  ///< Most recently used first.
  std::unordered_map<expert_id, entry> entries_;
};

/// Background loading order: layer by layer from the first, because that is the order in which the next token needs
/// them.
class preload_order {
 public:
  /// `sparse_layers`: numbers of the layers that have experts.
  preload_order(std::vector<std::uint16_t> sparse_layers, std::uint16_t experts)
      : layers_(std::move(sparse_layers)), experts_(experts) {}

  std::optional<expert_id> next();
  std::size_t total() const { return layers_.size() * experts_; }
  std::size_t done() const { return done_; }

 private:
  std::vector<std::uint16_t> layers_;
  std::uint16_t experts_;
  std::size_t done_ = 0;
};

}  // namespace troupe::engine
