#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/result.hpp"

namespace troupe::cpu {

/// Zeroed pages straight from the system: what is never touched costs no memory, and freeing gives it back at once.
/// Aligned to a page.
class memory_block {
 public:
  memory_block() = default;
  static result<memory_block> allocate(std::uint64_t bytes, const char* purpose);
  ~memory_block();
  memory_block(memory_block&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  memory_block& operator=(memory_block&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  std::uint64_t size() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::uint64_t bytes_ = 0;
};

/// Lets the whole pages inside `bytes` leave this process; they come back from their file when read again. Only for
/// bytes of a read-only file mapping.
void release_mapped(std::span<const std::byte> bytes);

}  // namespace troupe::cpu
