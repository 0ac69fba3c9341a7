#include "cpu/expert_store.hpp"

#include <new>
#include <string>

namespace troupe::cpu {

expert_store::expert_store(const weight_source& source, engine::precision compute)
    : source_(source),
      compute_(compute),
      experts_(source.spec.moe.experts),
      slots_(source.spec.layers.size() * source.spec.moe.experts) {}

bool expert_store::valid(expert_id id) const {
  return id.layer < source_.spec.layers.size() && source_.spec.layers[id.layer].sparse && id.index < experts_;
}

result<void> expert_store::load(expert_id id) {
  if (!valid(id)) {
    return error{error_kind::not_found,
                 "layer " + std::to_string(id.layer) + " has no expert " + std::to_string(id.index), "expert"};
  }
  if (auto found = find_or_pack(id); !found) return found.error();
  return {};
}

void expert_store::unload(expert_id id) {
  if (!valid(id)) return;
  expert freed;  // Its memory is returned after the lock is.
  const std::lock_guard lock(mutex_);
  freed.swap(slots_[slot(id)]);
  if (!freed) return;
  --resident_.count;
  resident_.bytes -= bytes(id);
}

engine::expert_totals expert_store::totals() const {
  const std::lock_guard lock(mutex_);
  return resident_;
}

bool expert_store::resident(expert_id id) const {
  if (!valid(id)) return false;
  const std::lock_guard lock(mutex_);
  return slots_[slot(id)] != nullptr;
}

std::uint64_t expert_store::bytes(expert_id id) const {
  return valid(id) ? ffn_shape(compute_, expert_source(source_, id.layer, id.index)).bytes() : 0;
}

result<expert_store::expert> expert_store::find_or_pack(expert_id id) try {
  const std::size_t at = slot(id);
  const auto find = [&] {
    const std::lock_guard lock(mutex_);
    return slots_[at];
  };
  if (auto found = find()) return found;
  const std::lock_guard packing(packing_[at % packing_.size()]);
  if (auto found = find()) return found;
  const auto source = expert_source(source_, id.layer, id.index);
  auto packed = pack_ffn(compute_, source, nullptr);
  if (auto done = source.done(source_); !done) return std::move(done).error();
  if (!packed) return packed.error();
  auto made = std::make_shared<const packed_ffn>(std::move(*packed));
  const std::lock_guard lock(mutex_);
  slots_[at] = made;
  ++resident_.count;
  resident_.bytes += bytes(id);
  return made;
} catch (const std::bad_alloc&) {  // a pool's worker must not throw
  return error{error_kind::overloaded, "not enough memory for an expert", "cpu backend"};
}

result<void> expert_store::acquire(std::uint32_t layer, std::span<const std::uint32_t> experts, thread_pool& pool,
                                   std::vector<expert>& out) {
  out.assign(experts.size(), nullptr);
  const auto id = [&](std::uint32_t i) {
    return expert_id{static_cast<std::uint16_t>(layer), static_cast<std::uint16_t>(experts[i])};
  };
  std::vector<std::uint32_t> missing;
  {
    const std::lock_guard lock(mutex_);
    for (std::uint32_t i = 0; i < experts.size(); ++i) {
      out[i] = slots_[slot(id(i))];
      if (!out[i]) missing.push_back(i);
    }
  }
  if (missing.empty()) return {};
  std::vector<result<void>> outcomes(missing.size());
  pool.run(static_cast<std::uint32_t>(missing.size()), [&](std::uint32_t task, unsigned) {
    auto found = find_or_pack(id(missing[task]));
    if (found) {
      out[missing[task]] = std::move(*found);
    } else {
      outcomes[task] = found.error();
    }
  });
  for (auto& outcome : outcomes) {
    if (!outcome) return outcome;
  }
  return {};
}

}  // namespace troupe::cpu
