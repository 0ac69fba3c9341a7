#pragma once

#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <optional>

#include "base/result.hpp"

/// What the program asks the operating system directly.
namespace troupe::app {

/// Memory that programs can still get: the kernel's MemAvailable, bounded by the limit of this process's control group.
std::uint64_t free_memory_bytes();

/// Bytes below the limit of a control group (cgroup v2, its folder), where cached files count as free; nothing when it
/// has no limit.
std::optional<std::uint64_t> available_to_group(const std::filesystem::path& group);

/// Whether so many more threads can run at once. Better known before half of them do: those would have to be ended
/// again, which libraries do not. The error says what to raise or lower.
result<void> can_start_threads(std::size_t count);

/// Puts /dev/null where standard input, output or error are closed, so that no other file gets their numbers, and lets
/// writes to a file that may not grow fail instead of ending the process. First of all.
void make_output_safe();

/// Lets this process open as many files as it may, and says how many that are.
std::uint64_t raise_open_files();

/// SIGTERM and SIGINT, and SIGHUP where it is not ignored (nohup), as values. Made on the main thread before any other
/// thread starts, because threads inherit that these signals are blocked; one object a process.
class termination_signals {
 public:
  termination_signals();
  /// The next signal, or nothing after `patience`.
  std::optional<int> wait(std::chrono::milliseconds patience);

 private:
  sigset_t set_{};
};

}  // namespace troupe::app
