#include "app/machine.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace troupe::app {
namespace {

/// A file that holds one number; nothing when it is absent or holds a word ("max").
std::optional<std::uint64_t> read_number(const char* path) {
  std::ifstream file(path);
  std::uint64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

std::uint64_t available_to_the_machine() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  std::string rest;
  for (std::uint64_t kibibytes = 0; file >> key; std::getline(file, rest))
    if (key == "MemAvailable:" && file >> kibibytes) return kibibytes * 1024;
  return std::numeric_limits<std::uint64_t>::max();
}

}  // namespace

std::uint64_t free_memory_bytes() {
  std::uint64_t free = available_to_the_machine();
  const auto limit = read_number("/sys/fs/cgroup/memory.max");
  const auto used = read_number("/sys/fs/cgroup/memory.current");
  if (limit && used) free = std::min(free, *limit - std::min(*used, *limit));
  return free;
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
