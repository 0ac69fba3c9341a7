#include "engine/expert_residency.hpp"

namespace troupe::engine {

std::vector<expert_id> expert_residency::touch(expert_id id, std::uint64_t bytes) {
  if (const auto known = entries_.find(id); known != entries_.end()) {
    recent_.splice(recent_.begin(), recent_, known->second.place);
    return {};
  }
  recent_.push_front(id);
  entries_.emplace(id, entry{recent_.begin(), bytes});
  bytes_ += bytes;
  std::vector<expert_id> out;
  while (budget_ != 0 && bytes_ > budget_ && recent_.size() > 1) {
    out.push_back(recent_.back());
    forget(recent_.back());
  }
  return out;
}

void expert_residency::forget(expert_id id) {
  const auto known = entries_.find(id);
  if (known == entries_.end()) return;
  bytes_ -= known->second.bytes;
  recent_.erase(known->second.place);
  entries_.erase(known);
}

std::optional<expert_id> preload_order::next() {
  if (done_ >= total()) return std::nullopt;
  const expert_id id{layers_[done_ / experts_], static_cast<std::uint16_t>(done_ % experts_)};
  ++done_;
  return id;
}

}  // namespace troupe::engine
