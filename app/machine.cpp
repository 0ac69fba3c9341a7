#include "app/machine.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <fstream>
#include <latch>
#include <limits>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

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

result<void> can_start_threads(std::size_t count) {
  std::latch all_counted{1};
  std::vector<std::thread> threads;
  std::optional<std::string> refusal;
  try {
    threads.reserve(count);
    while (threads.size() < count) threads.emplace_back([&] { all_counted.wait(); });
  } catch (const std::exception& failure) {
    refusal = failure.what();
  }
  all_counted.count_down();
  for (auto& thread : threads) thread.join();
  if (!refusal) return {};
  return error{error_kind::unavailable,
               "the server needs " + std::to_string(count) + " threads, but after " + std::to_string(threads.size()) +
                   " the operating system says: " + *refusal +
                   "; raise the limit of processes (ulimit -u) or of memory (ulimit -v), or lower --threads, "
                   "--io-threads or --preparers",
               {}};
}

void make_output_safe() {
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(standard, F_GETFD) < 0) open("/dev/null", O_RDWR);  // takes the lowest free number: this one
  std::signal(SIGXFSZ, SIG_IGN);
}

std::uint64_t raise_open_files() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return std::numeric_limits<std::uint64_t>::max();
  const rlimit raised{.rlim_cur = files.rlim_max, .rlim_max = files.rlim_max};
  return setrlimit(RLIMIT_NOFILE, &raised) == 0 ? raised.rlim_cur : files.rlim_cur;
}

termination_signals::termination_signals() {
  sigemptyset(&set_);
  sigaddset(&set_, SIGTERM);
  sigaddset(&set_, SIGINT);
  struct sigaction present {};
  if (sigaction(SIGHUP, nullptr, &present) == 0 && present.sa_handler != SIG_IGN) sigaddset(&set_, SIGHUP);
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
