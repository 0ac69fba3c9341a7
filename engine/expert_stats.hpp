#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::engine {

/// Counts what the router sends where. One owner, one thread.
class expert_stats {
 public:
  expert_stats(std::uint32_t layers, std::uint32_t experts)
      : experts_(experts), tokens_(std::size_t{layers} * experts) {}

  /// One step's counts, [layers, experts]; empty for dense models.
  void add(std::span<const std::uint32_t> step);

  std::uint64_t tokens(std::uint32_t layer, std::uint32_t expert) const {
    return tokens_[std::size_t{layer} * experts_ + expert];
  }
  std::uint64_t layer_total(std::uint32_t layer) const;
  /// Of its layer's tokens; 0 while there are none.
  double share(std::uint32_t layer, std::uint32_t expert) const;
  /// The busiest expert's tokens over the layer's mean: 1 is even.
  double imbalance(std::uint32_t layer) const;

  std::uint32_t experts() const { return experts_; }
  std::uint32_t layers() const { return experts_ == 0 ? 0 : static_cast<std::uint32_t>(tokens_.size() / experts_); }

 private:
  std::uint32_t experts_;
  std::vector<std::uint64_t> tokens_;
};

}  // namespace troupe::engine
