#pragma once

#include <atomic>
#include <chrono>
#include <memory>

/// Time and cancellation as every message carries them. Policies never read a clock: `now` is an argument.
namespace troupe {

using steady_time = std::chrono::steady_clock::time_point;
inline constexpr steady_time no_deadline = steady_time::max();

/// Shared by everything that works on one request: whoever sees the client go away cancels, every stage looks before it
/// works. Any thread may call any member.
class cancel_token {
 public:
  cancel_token() : flag_(std::make_shared<std::atomic<bool>>(false)) {}
  void cancel() const { flag_->store(true, std::memory_order_release); }
  bool cancelled() const { return flag_->load(std::memory_order_acquire); }

 private:
  std::shared_ptr<std::atomic<bool>> flag_;
};

}  // namespace troupe
