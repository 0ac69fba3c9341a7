#include "app/machine.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>

namespace troupe::app {
namespace {

/// A file that holds one number; nothing when it is absent or holds a word ("max").
std::optional<std::uint64_t> read_number(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::uint64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

/// The number behind `wanted` in a file of "name number" lines.
std::optional<std::uint64_t> read_entry(const std::filesystem::path& path, std::string_view wanted) {
  std::ifstream file(path);
  std::string key;
  std::string rest;
  for (std::uint64_t value = 0; file >> key; std::getline(file, rest))
    if (key == wanted && file >> value) return value;
  return std::nullopt;
}

std::uint64_t available_to_the_machine() {
  const auto kibibytes = read_entry("/proc/meminfo", "MemAvailable:");
  return kibibytes ? *kibibytes * 1024 : std::numeric_limits<std::uint64_t>::max();
}

}  // namespace

std::optional<std::uint64_t> available_to_group(const std::filesystem::path& group) {
  const auto limit = read_number(group / "memory.max");
  auto used = read_number(group / "memory.current");
  if (!limit || !used) return std::nullopt;
  // Files that were read or written stay in memory, counted as used, until somebody needs the room.
  for (const auto* files : {"active_file", "inactive_file"})
    *used -= std::min(*used, read_entry(group / "memory.stat", files).value_or(0));
  return *limit - std::min(*used, *limit);
}

std::uint64_t free_memory_bytes() {
  const std::uint64_t machine = available_to_the_machine();
  return std::min(machine, available_to_group("/sys/fs/cgroup").value_or(machine));
}

termination_signals::termination_signals() {
  sigemptyset(&set_);
  sigaddset(&set_, SIGTERM);
  sigaddset(&set_, SIGINT);
  pthread_sigmask(SIG_BLOCK, &set_, nullptr);
}

std::optional<int> termination_signals::wait(std::chrono::milliseconds patience) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(patience);
  const std::chrono::nanoseconds rest = patience - seconds;
  const timespec limit{.tv_sec = seconds.count(), .tv_nsec = rest.count()};
  const int signal = sigtimedwait(&set_, nullptr, &limit);
  if (signal < 0) return std::nullopt;
  return signal;
}

}  // namespace troupe::app
