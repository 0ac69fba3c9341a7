#include "engine/admission.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::engine {

namespace {
constexpr std::size_t max_departures = 4096;
constexpr double longest_wait = 60.0;
}  // namespace

void drain_rate::left(steady_time now, std::uint64_t units) {
  asked_.reset();
  departures_.push_back({now, units});
  while (departures_.size() > max_departures || (!departures_.empty() && departures_.front().at + window_ < now))
    departures_.pop_front();
}

double drain_rate::per_second(steady_time now) const {
  std::uint64_t sum = 0;
  steady_time oldest = now;
  for (const auto& d : departures_) {
    if (d.at + window_ < now) continue;
    oldest = std::min(oldest, d.at);
    sum += d.units;
  }
  const double span = std::max(1.0, std::chrono::duration<double>(now - oldest).count());
  return static_cast<double>(sum) / span;
}

std::chrono::seconds drain_rate::wait_for(double units, steady_time now) {
  const double rate = per_second(now);
  if (!asked_) asked_ = now;
  const double wait = rate > 0.0 ? units / rate : std::chrono::duration<double>(now - *asked_).count();
  return std::chrono::seconds(static_cast<std::int64_t>(std::clamp(std::ceil(wait), 1.0, longest_wait)));
}

bool admission_policy::enter(std::uint64_t tokens) {
  const bool full = requests_ >= limits_.requests || (requests_ != 0 && tokens_ + tokens > limits_.tokens);
  if (full) return false;
  enter_with_others(tokens);
  return true;
}

void admission_policy::enter_with_others(std::uint64_t tokens) {
  ++requests_;
  tokens_ += tokens;
}

void admission_policy::leave(std::uint64_t tokens, steady_time now) {
  requests_ -= std::min<std::uint32_t>(requests_, 1);
  tokens_ -= std::min(tokens_, tokens);
  rate_.left(now, tokens);
}

std::chrono::seconds admission_policy::retry_after(std::uint64_t tokens, steady_time now) {
  // With the queue full by count, one average request must leave; by tokens, as many as the newcomer brings.
  const std::uint64_t average = requests_ == 0 ? 0 : tokens_ / requests_;
  const double excess = tokens_ + tokens > limits_.tokens ? static_cast<double>(tokens_ + tokens - limits_.tokens)
                                                          : static_cast<double>(average);
  return rate_.wait_for(excess, now);
}

}  // namespace troupe::engine
