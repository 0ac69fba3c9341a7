#include "actors/house.hpp"

#include <algorithm>

namespace troupe::actors {
namespace {

/// Mailboxes behind admission hold what was admitted: its bound is theirs.
constexpr std::int64_t admitted_only = 0;
/// The prompts of one call arrive at once.
constexpr std::int64_t largest_call = 1024;

}  // namespace

house::house(const config::settings& configured, clock_function now) : settings(configured), clock(std::move(now)) {
  const auto make = [this](std::string name, std::int64_t bound) {
    return std::make_shared<stage>(std::move(name), bound, measured, clock);
  };
  const std::int64_t queue = settings.limits.max_queued_requests;
  gateway_stage = make("gateway", 4 * queue + largest_call);
  admission_stage = make("admission", 4 * queue + largest_call);
  cache_stage = make("memory_cache", admitted_only);
  for (std::uint32_t i = 0; i < std::max<std::uint32_t>(1, settings.limits.preparers); ++i)
    preparer_stages.push_back(make("preparer " + std::to_string(i), queue + 64));
  collector_stage = make("batch_collector", admitted_only);
  executor_stage = make("executor", admitted_only);
  dispatcher_stage = make("dispatcher", admitted_only);
  loader_stage = make("expert_loader", admitted_only);
}

std::vector<std::shared_ptr<stage>> house::stages() const {
  std::vector<std::shared_ptr<stage>> out{gateway_stage, admission_stage, cache_stage};
  out.insert(out.end(), preparer_stages.begin(), preparer_stages.end());
  out.insert(out.end(), {collector_stage, executor_stage, dispatcher_stage, loader_stage});
  return out;
}

std::uint8_t house::next_preparer() const {
  const std::lock_guard lock(handles_);
  const auto load = [this](std::size_t i) { return std::pair(!preparers_[i].alive, preparer_stages[i]->depth()); };
  std::size_t best = 0;
  for (std::size_t i = 1; i < preparers_.size(); ++i)
    if (load(i) < load(best)) best = i;
  return static_cast<std::uint8_t>(best);
}

post<preparer_actor> house::preparer(std::size_t index) const {
  const std::lock_guard lock(handles_);
  return index < preparers_.size() ? preparers_[index] : post<preparer_actor>{};
}

void house::put_preparer(std::size_t index, preparer_actor handle) {
  const std::lock_guard lock(handles_);
  if (index >= preparers_.size()) preparers_.resize(index + 1);
  preparers_[index] = {std::move(handle), preparers_[index].life + 1, true};
}

void house::preparer_died(std::size_t index) {
  const std::lock_guard lock(handles_);
  preparers_[index].alive = false;
}

bool house::lost(const whereabouts& at) const {
  switch (at.stage) {
    case hop::gateway:
      return at.life != this->at(&house::gateway).life;
    case hop::admission:
      return at.life != this->at(&house::admission).life;
    case hop::memory_cache:
      return at.life != this->at(&house::memory_cache).life;
    case hop::preparer:
      return at.life != preparer(at.preparer).life;
    case hop::batch_collector:
      return at.life != this->at(&house::batch_collector).life ||
             at.dispatcher_life != static_cast<std::uint16_t>(this->at(&house::dispatcher).life);
    case hop::none:
    case hop::dispatcher:
      break;
  }
  return false;
}

void house::clear_handles() {
  const std::lock_guard lock(handles_);
  preparers_.clear();
  gateway = {};
  admission = {};
  memory_cache = {};
  batch_collector = {};
  executor = {};
  dispatcher = {};
  expert_loader = {};
}

void house::count_experts(std::span<const std::uint32_t> step) {
  if (step.empty()) return;
  show_residency();
  const auto& spec = model->spec();
  const std::lock_guard lock(counts_);
  if (!stats_)
    stats_ = std::make_unique<engine::expert_stats>(static_cast<std::uint32_t>(spec.layers.size()), spec.moe.experts);
  stats_->add(step);
  std::uint64_t total = 0;
  for (const std::uint32_t count : step) total += count;
  model_measured->expert_tokens.Increment(static_cast<double>(total));
  double imbalance = 0.0;
  std::uint32_t sparse = 0;
  for (std::uint32_t l = 0; l < stats_->layers(); ++l) {
    if (!spec.layers[l].sparse) continue;
    imbalance += stats_->imbalance(l);
    ++sparse;
  }
  if (sparse != 0) model_measured->expert_imbalance.Set(imbalance / sparse);
}

void house::show_residency() {
  const auto resident = backend->resident_experts();
  model_measured->experts_resident.Set(static_cast<double>(resident.count));
  model_measured->experts_resident_bytes.Set(static_cast<double>(resident.bytes));
}

expert_report house::experts() const {
  expert_report report;
  if (!model || !backend) return report;
  report.precision = precision;
  const auto& spec = model->spec();
  const auto stats = [&]() -> std::optional<engine::expert_stats> {
    const std::lock_guard lock(counts_);
    if (stats_) return *stats_;
    return std::nullopt;
  }();
  for (std::uint32_t l = 0; l < spec.layers.size(); ++l) {
    auto& row = report.layers.emplace_back();
    if (!spec.layers[l].sparse) continue;
    for (std::uint32_t e = 0; e < spec.moe.experts; ++e) {
      const expert_id id{static_cast<std::uint16_t>(l), static_cast<std::uint16_t>(e)};
      expert_entry entry;
      entry.tokens = stats ? stats->tokens(l, e) : 0;
      entry.share = stats ? stats->share(l, e) : 0.0;
      entry.resident = backend->expert_resident(id);
      entry.bytes = backend->expert_bytes(id);
      row.push_back(entry);
    }
  }
  return report;
}

}  // namespace troupe::actors
