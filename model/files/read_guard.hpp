#pragma once

#include <cstddef>
#include <span>

#include "base/result.hpp"

/// Reading a mapped file may fail at any touch: it was cut short, or its disk or network is gone. The kernel says so by
/// SIGBUS. For guarded ranges the signal is answered: the range reads as zeros from that page on, and whoever has read
/// asks here whether what was read may be used. SIGBUS anywhere else ends the process, as ever. Not seen: a cut inside
/// the last page that is left, whose rest the kernel itself shows as zeros.
namespace troupe::model {

/// Guards `bytes`, a whole mapping, while it lives. Any thread.
class read_guard {
 public:
  read_guard() = default;
  explicit read_guard(std::span<const std::byte> bytes);
  read_guard(read_guard&& other) noexcept;
  read_guard& operator=(read_guard&& other) noexcept;
  ~read_guard();

 private:
  int slot_ = -1;
};

/// `io` when a guarded page at or before the end of `bytes` could not be read in the mapping that holds them. Fine for
/// memory that is not guarded. To be asked after reading. Any thread.
result<void> check_readable(std::span<const std::byte> bytes);

}  // namespace troupe::model
