#pragma once

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "base/ids.hpp"

namespace troupe::model {

/// Remembers the ids of short pieces, because words repeat. A table of fixed size in which a newer piece takes the
/// place of an older one; a busy slot counts as a miss, so no thread ever waits. Any thread, concurrently.
class piece_cache {
 public:
  piece_cache() : slots_(std::make_unique<slot[]>(slot_count)) {}

  /// Appends the ids of `piece` to `out` if they are known.
  bool find(std::string_view piece, std::size_t hash, std::vector<token_id>& out) const {
    if (piece.size() > max_bytes) return false;
    auto& s = slots_[hash % slot_count];
    if (s.busy.exchange(true, std::memory_order_acquire)) return false;
    const bool hit =
        s.ids != 0 && s.bytes == piece.size() && std::memcmp(s.text.data(), piece.data(), piece.size()) == 0;
    if (hit) out.insert(out.end(), s.id.begin(), s.id.begin() + s.ids);
    s.busy.store(false, std::memory_order_release);
    return hit;
  }

  void remember(std::string_view piece, std::size_t hash, const token_id* ids, std::size_t count) const {
    if (piece.size() > max_bytes || count == 0 || count > max_ids) return;
    auto& s = slots_[hash % slot_count];
    if (s.busy.exchange(true, std::memory_order_acquire)) return;
    s.bytes = static_cast<std::uint8_t>(piece.size());
    s.ids = static_cast<std::uint8_t>(count);
    std::memcpy(s.text.data(), piece.data(), piece.size());
    std::memcpy(s.id.data(), ids, count * sizeof(token_id));
    s.busy.store(false, std::memory_order_release);
  }

 private:
  static constexpr std::size_t slot_count = 1 << 15;
  static constexpr std::size_t max_bytes = 29;
  static constexpr std::size_t max_ids = 8;
  struct alignas(64) slot {
    std::atomic<bool> busy{false};
    std::uint8_t bytes = 0;
    std::uint8_t ids = 0;
    std::array<char, max_bytes> text{};
    std::array<token_id, max_ids> id{};
  };
  static_assert(sizeof(slot) == 64);

  std::unique_ptr<slot[]> slots_;
};

}  // namespace troupe::model
