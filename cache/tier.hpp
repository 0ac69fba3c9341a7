#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/cancel.hpp"

/// The result cache's tiers: each answers a key with a complete answer or nothing, and is never an error to a client.
namespace troupe::cache {

/// An answer as it is kept: opaque bytes of a size that counts. Immutable and shared.
using answer = std::shared_ptr<const std::string>;

struct hit {
  answer value;
  std::chrono::seconds age{0};
};

/// One tier. Time is an argument. Each tier is owned by one actor.
class tier {
 public:
  virtual ~tier() = default;
  virtual std::optional<hit> find(const std::string& key, steady_time now) = 0;
  virtual void store(const std::string& key, answer value, steady_time now) = 0;
};

}  // namespace troupe::cache
