#include "model/files/read_guard.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <utility>

namespace troupe::model {
namespace {

struct guarded_range {
  std::atomic<std::uintptr_t> begin{0};  ///< 0: free.
  std::atomic<std::uintptr_t> end{0};
  std::atomic<std::uintptr_t> readable_end{0};  ///< From here on it reads as zeros.
};

// A signal handler can be told of nothing but by static memory. The largest models come in a few hundred files; what
// finds no place is not guarded.
constexpr int max_ranges = 4096;
guarded_range ranges[max_ranges];
std::atomic<int> ranges_used{0};

guarded_range* range_of(std::uintptr_t address) {
  const int used = ranges_used.load();
  for (int i = 0; i < used; ++i) {
    const std::uintptr_t begin = ranges[i].begin.load();
    // The place may change hands between the two: then its beginning is another, or none, when looked at again.
    if (address >= begin && address < ranges[i].end.load() && begin == ranges[i].begin.load()) return &ranges[i];
  }
  return nullptr;
}

/// Makes the rest of the range readable as zeros, so that the interrupted read goes on.
void on_failed_read(int signal, siginfo_t* info, void*) {
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  const bool is_fault = info->si_code > 0;  // else somebody has sent the signal, and there is no address
  guarded_range* range = is_fault ? range_of(address) : nullptr;
  if (range != nullptr) {
    const auto page_size = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const std::uintptr_t page = address / page_size * page_size;
    std::uintptr_t readable = range->readable_end.load();
    while (page < readable && !range->readable_end.compare_exchange_weak(readable, page)) {
    }
    void* const zeros = ::mmap(reinterpret_cast<void*>(page), range->end.load() - page, PROT_READ,  // NOLINT
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    if (zeros != MAP_FAILED) return;
  }
  ::signal(signal, SIG_DFL);  // a read is tried again and ends the process
  if (!is_fault) ::raise(signal);
}

void answer_failed_reads() {
  static const bool installed = [] {
    struct sigaction action {};
    action.sa_sigaction = on_failed_read;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    ::sigemptyset(&action.sa_mask);
    return ::sigaction(SIGBUS, &action, nullptr) == 0;
  }();
  (void)installed;
}

/// Takes a free place: one that was given back, or a fresh one.
int take_slot() {
  for (int i = 0; i < max_ranges; ++i) {
    std::uintptr_t free = 0;
    if (!ranges[i].begin.compare_exchange_strong(free, UINTPTR_MAX)) continue;  // UINTPTR_MAX: holds no address yet
    int used = ranges_used.load();
    while (used <= i && !ranges_used.compare_exchange_weak(used, i + 1)) {
    }
    return i;
  }
  return -1;
}

}  // namespace

read_guard::read_guard(std::span<const std::byte> bytes) {
  answer_failed_reads();
  slot_ = take_slot();
  if (slot_ < 0) return;
  guarded_range& range = ranges[slot_];
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  range.end = begin + bytes.size();
  range.readable_end = begin + bytes.size();
  range.begin = begin;
}

read_guard::read_guard(read_guard&& other) noexcept : slot_(std::exchange(other.slot_, -1)) {}

read_guard& read_guard::operator=(read_guard&& other) noexcept {
  std::swap(slot_, other.slot_);
  return *this;
}

read_guard::~read_guard() {
  if (slot_ < 0) return;
  ranges[slot_].end = 0;
  ranges[slot_].begin = 0;
}

result<void> check_readable(std::span<const std::byte> bytes) {
  if (bytes.empty()) return {};
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  const guarded_range* range = range_of(begin);
  if (range == nullptr || begin + bytes.size() <= range->readable_end.load()) return {};
  return error{
      error_kind::io,
      "the model's file could not be read: it was cut short or changed, or its disk failed; bring the file back "
      "and restart",
      "model"};
}

}  // namespace troupe::model
