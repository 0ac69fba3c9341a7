#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.hpp"
#include "engine/backend.hpp"

namespace troupe::engine {

/// Hands out the backend's KV pages and counts who holds them, so that none is lost or given twice. Pages are shared by
/// reference count. One owner, one thread.
class page_pool {
 public:
  explicit page_pool(std::uint32_t pages);

  /// `count` pages with one reference each, or nothing when fewer are free.
  std::optional<std::vector<page_index>> allocate(std::uint32_t count);
  void share(page_index page);    ///< One more reference.
  void release(page_index page);  ///< One reference less; the last one frees the page.
  void release_all(std::vector<page_index>& pages);

  std::uint32_t total() const { return static_cast<std::uint32_t>(references_.size()); }
  std::uint32_t free() const { return static_cast<std::uint32_t>(free_.size()); }
  std::uint32_t used() const { return total() - free(); }

  static std::uint32_t pages_for(std::uint64_t tokens) {
    return static_cast<std::uint32_t>((tokens + page_tokens - 1) / page_tokens);
  }

 private:
  std::vector<std::uint32_t> references_;
  std::vector<page_index> free_;  ///< A stack: the page freed last is the warmest.
};

}  // namespace troupe::engine
