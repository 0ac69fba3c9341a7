#pragma once

#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <optional>

/// What the program asks the operating system directly.
namespace troupe::app {

/// Memory that programs can still get: the kernel's MemAvailable, bounded by the limit of this process's control group.
std::uint64_t free_memory_bytes();

/// Bytes below the limit of a control group (cgroup v2, its folder), where cached files count as free; nothing when it
/// has no limit.
std::optional<std::uint64_t> available_to_group(const std::filesystem::path& group);

/// SIGTERM and SIGINT as values. Made on the main thread before any other thread starts, because threads inherit
/// that these signals are blocked; one object a process.
class termination_signals {
 public:
  termination_signals();
  /// The next signal, or nothing after `patience`.
  std::optional<int> wait(std::chrono::milliseconds patience);

 private:
  sigset_t set_{};
};

}  // namespace troupe::app
