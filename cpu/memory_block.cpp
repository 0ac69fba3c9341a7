#include "cpu/memory_block.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace troupe::cpu {

result<memory_block> memory_block::allocate(std::uint64_t bytes, const char* purpose) {
  memory_block block;
  if (bytes == 0) return block;
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) {
    return error{error_kind::overloaded,
                 "cannot reserve " + std::to_string(bytes >> 20) + " MiB of memory (" + std::strerror(errno) + ")",
                 purpose};
  }
  block.data_ = static_cast<std::byte*>(data);
  block.bytes_ = bytes;
  return block;
}

memory_block::~memory_block() {
  if (data_) munmap(data_, bytes_);
}

void release_mapped(std::span<const std::byte> bytes) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<std::uintptr_t>(bytes.data()) + page - 1) / page * page;
  const auto end = (reinterpret_cast<std::uintptr_t>(bytes.data()) + bytes.size()) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace troupe::cpu
