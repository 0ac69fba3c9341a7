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

bool admission_policy::fits(demand whole) const {
  return inside_.answers == 0 ||
         (inside_.answers + whole.answers <= limits_.answers && inside_.tokens + whole.tokens <= limits_.tokens);
}

void admission_policy::enter(demand one) {
  inside_.answers += one.answers;
  inside_.tokens += one.tokens;
}

void admission_policy::leave(demand one, steady_time now) {
  inside_.answers -= std::min(inside_.answers, one.answers);
  inside_.tokens -= std::min(inside_.tokens, one.tokens);
  rate_.left(now, one.tokens);
}

std::chrono::seconds admission_policy::retry_after(demand whole, steady_time now) {
  // Full by count, as many average answers must leave as the newcomer brings too many; by tokens, as many tokens.
  const auto excess = [](std::uint64_t wanted, std::uint64_t limit) { return wanted > limit ? wanted - limit : 0; };
  const std::uint64_t average = inside_.answers == 0 ? 0 : inside_.tokens / inside_.answers;
  const std::uint64_t by_count = average * excess(inside_.answers + whole.answers, limits_.answers);
  const std::uint64_t by_tokens = excess(inside_.tokens + whole.tokens, limits_.tokens);
  return rate_.wait_for(static_cast<double>(std::max(by_count, by_tokens)), now);
}

}  // namespace troupe::engine
