#include "actors/request_table.hpp"

namespace troupe::actors {

void request_table::add(const request_ptr& context) {
  const std::lock_guard lock(guard_);
  inside_.emplace(context.get(), context);
}

void request_table::remove(const request_context& context) {
  request_ptr last;  // not destroyed under the lock
  const std::lock_guard lock(guard_);
  const auto it = inside_.find(&context);
  if (it == inside_.end()) return;
  last = std::move(it->second);
  inside_.erase(it);
}

bool request_table::empty() const {
  const std::lock_guard lock(guard_);
  return inside_.empty();
}

std::vector<request_ptr> request_table::all() const {
  const std::lock_guard lock(guard_);
  std::vector<request_ptr> out;
  out.reserve(inside_.size());
  for (const auto& [key, context] : inside_) out.push_back(context);
  return out;
}

}  // namespace troupe::actors
