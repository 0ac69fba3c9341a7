#pragma once

#include <cstdint>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "cpu/memory_block.hpp"
#include "engine/backend.hpp"

/// Keys and values of all sequences in pages of 16 positions. A page holds all layers; inside, each (layer, kv head)
/// has its keys [head_dim][16], position innermost, then its values [16][head_dim padded to 16]. Pages that were never
/// written cost no memory.
namespace troupe::cpu {

class kv_cache {
 public:
  struct shape {
    std::uint32_t pages = 0;
    std::uint32_t layers = 0;
    std::uint32_t kv_heads = 0;
    std::uint32_t head_dim = 0;
    bool bf16 = true;  ///< Else fp32.
  };
  static result<kv_cache> create(const shape& s);

  std::uint32_t pages() const { return shape_.pages; }
  bool bf16() const { return shape_.bf16; }
  std::uint64_t page_bytes() const { return page_bytes_; }

  const std::byte* block(page_index page, std::uint32_t layer, std::uint32_t head) const;

  /// Stores one position's key and value, `head_dim` floats each, at slot 0..15 of the page.
  void write(page_index page, std::uint32_t layer, std::uint32_t head, std::uint32_t slot, const float* key,
             const float* value);

 private:
  shape shape_;
  std::uint64_t block_bytes_ = 0;
  std::uint64_t page_bytes_ = 0;
  memory_block memory_;
};

}  // namespace troupe::cpu
