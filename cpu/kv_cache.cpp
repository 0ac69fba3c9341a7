#include "cpu/kv_cache.hpp"

#include "base/float16.hpp"
#include "cpu/kernels/kernels.hpp"

namespace troupe::cpu {
namespace {

template <class Element, class Convert>
void put(std::byte* block, std::uint32_t head_dim, std::uint32_t slot, const float* key, const float* value,
         Convert convert) {
  auto* keys = reinterpret_cast<Element*>(block);
  for (std::uint32_t d = 0; d < head_dim; ++d) keys[d * engine::page_tokens + slot] = convert(key[d]);
  auto* values = keys + std::size_t{head_dim} * engine::page_tokens + std::size_t{slot} * round_up(head_dim, 16);
  for (std::uint32_t d = 0; d < head_dim; ++d) values[d] = convert(value[d]);
}

}  // namespace

result<kv_cache> kv_cache::create(const shape& s) {
  kv_cache cache;
  cache.shape_ = s;
  const std::uint64_t element = s.bf16 ? 2 : 4;
  cache.block_bytes_ = element * engine::page_tokens * (s.head_dim + round_up(s.head_dim, 16));
  cache.page_bytes_ = cache.block_bytes_ * s.layers * s.kv_heads;
  std::uint64_t total = 0;
  if (__builtin_mul_overflow(cache.page_bytes_, std::uint64_t{s.pages}, &total)) {
    return error{error_kind::too_large, "the KV cache's size does not fit 64 bits; lower the number of pages",
                 "KV cache"};
  }
  auto memory = memory_block::allocate(total, "KV cache");
  if (!memory) return memory.error();
  cache.memory_ = std::move(*memory);
  return cache;
}

const std::byte* kv_cache::block(page_index page, std::uint32_t layer, std::uint32_t head) const {
  return memory_.data() + static_cast<std::uint64_t>(page) * page_bytes_ +
         (std::uint64_t{layer} * shape_.kv_heads + head) * block_bytes_;
}

void kv_cache::write(page_index page, std::uint32_t layer, std::uint32_t head, std::uint32_t slot, const float* key,
                     const float* value) {
  auto* target = const_cast<std::byte*>(block(page, layer, head));
  if (shape_.bf16) {
    put<std::uint16_t>(target, shape_.head_dim, slot, key, value, float_to_bfloat16);
  } else {
    put<float>(target, shape_.head_dim, slot, key, value, [](float x) { return x; });
  }
}

}  // namespace troupe::cpu
