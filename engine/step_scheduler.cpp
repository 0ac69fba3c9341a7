#include "engine/step_scheduler.hpp"

#include <algorithm>

namespace troupe::engine {
namespace {

template <class Queue>
auto find_in(Queue& queue, sequence_id id) {
  return std::find_if(queue.begin(), queue.end(), [&](const sequence& s) { return s.id == id; });
}

/// Who gets pages first, and who gives them up last.
bool outranks(const sequence& a, const sequence& b) {
  return a.priority != b.priority ? a.priority > b.priority : a.arrival < b.arrival;
}

}  // namespace

result<void> step_scheduler::add(sequence next, steady_time now) {
  const std::uint64_t longest = std::uint64_t{next.prompt_tokens} + next.max_new_tokens;
  if (page_pool::pages_for(longest) > pages_.total())
    return error{error_kind::too_large,
                 "the request can grow to " + std::to_string(longest) + " tokens, but the KV cache holds " +
                     std::to_string(std::uint64_t{pages_.total()} * page_tokens) +
                     "; ask for fewer or raise engine.kv_cache_bytes",
                 "max_tokens"};
  next.arrival = arrivals_++;
  next.arrived = now;
  // A tenant that was away starts level with the least served one, not with a credit for its absence.
  if (!served_.contains(next.tenant)) {
    std::uint64_t level = 0;
    if (!served_.empty())
      level = std::min_element(served_.begin(), served_.end(), [](const auto& a, const auto& b) {
                return a.second < b.second;
              })->second;
    served_.emplace(next.tenant, level);
  }
  waiting_.push_back(std::move(next));
  return {};
}

std::vector<dropped_sequence> step_scheduler::sweep(steady_time now) {
  std::vector<dropped_sequence> out;
  for (const auto* queue : {&running_, &waiting_}) {
    for (const sequence& s : *queue) {
      if (s.cancel.cancelled())
        out.push_back({s.id, drop_reason::cancelled, s.started});
      else if (now >= s.deadline)
        out.push_back({s.id, drop_reason::deadline, s.started});
      else if (s.queues() && now >= s.queue_deadline)
        out.push_back({s.id, drop_reason::queue_deadline, s.started});
    }
  }
  for (const auto& dropped : out) remove(dropped.id);
  return out;
}

bool step_scheduler::still_filling(steady_time now) const {
  if (!running_.empty() || waiting_.size() >= limits_.max_batch) return false;
  const auto oldest = std::min_element(waiting_.begin(), waiting_.end(),
                                       [](const sequence& a, const sequence& b) { return a.arrived < b.arrived; });
  return oldest != waiting_.end() && !oldest->started && now < oldest->arrived + limits_.max_wait;
}

std::vector<step_item> step_scheduler::plan(steady_time now, std::optional<sequence_id> only) {
  std::vector<step_item> items;
  in_step_.clear();
  if (idle() || (!only && still_filling(now))) return items;
  std::uint32_t budget = limits_.step_tokens;

  running_.sort([](const sequence& a, const sequence& b) { return outranks(a, b); });
  std::vector<sequence_id> order;  // a preemption changes the list while it is walked
  for (const sequence& s : running_) order.push_back(s.id);
  for (const bool decoding : {true, false}) {
    for (const sequence_id id : order) {
      sequence* s = find_running(id);
      if (s == nullptr || (only && id != *only) || s->paused() || s->decodes() != decoding) continue;
      if (budget == 0 || items.size() == limits_.max_batch) break;
      const std::uint32_t count = std::min(budget, s->uncomputed());
      if (count != 0 && ensure_pages(*s, s->computed + count)) schedule(*s, count, budget, items);
    }
  }
  admit(now, only, budget, items);
  // Without pages for it while others hold them, that one waits like any other: the rest must not stand still for it.
  if (only && items.empty()) return plan(now);
  return items;
}

void step_scheduler::admit(steady_time now, std::optional<sequence_id> only, std::uint32_t& budget,
                           std::vector<step_item>& items) {
  while (budget != 0 && items.size() < limits_.max_batch && unpaused() < limits_.max_batch) {
    const auto next = next_waiting(now, only);
    if (next == waiting_.end()) return;
    // Room for all its tokens and the next one: a sequence that is let in does not stall at once. Nobody who could work
    // is preempted for it.
    const std::uint32_t wanted = page_pool::pages_for(next->tokens.size() + (next->max_new_tokens != 0 ? 1 : 0));
    if (!reclaim_from_paused(wanted, *next)) return;
    running_.splice(running_.end(), waiting_, next);
    sequence& s = running_.back();
    const std::uint32_t count = std::min(budget, s.uncomputed());
    if (!ensure_pages(s, s.computed + count)) return;
    s.started = true;
    if (s.begun) s.begun->store(true, std::memory_order_relaxed);
    schedule(s, count, budget, items);
  }
}

std::size_t step_scheduler::unpaused() const {
  return static_cast<std::size_t>(
      std::count_if(running_.begin(), running_.end(), [](const sequence& s) { return !s.paused(); }));
}

step_scheduler::sequence_list::iterator step_scheduler::next_waiting(steady_time now, std::optional<sequence_id> only) {
  if (only) return find_in(waiting_, *only);
  const auto first = std::min_element(waiting_.begin(), waiting_.end(), [&](const sequence& a, const sequence& b) {
    if (a.paused() != b.paused()) return b.paused();
    if (a.started != b.started) return a.started;  // preempted ones were let in already
    const auto pa = effective_priority(a, now);
    const auto pb = effective_priority(b, now);
    if (pa != pb) return pa > pb;
    const auto sa = served_.find(a.tenant)->second;
    const auto sb = served_.find(b.tenant)->second;
    if (sa != sb) return sa < sb;
    return a.arrival < b.arrival;
  });
  return first == waiting_.end() || first->paused() ? waiting_.end() : first;
}

std::int64_t step_scheduler::effective_priority(const sequence& s, steady_time now) const {
  return s.priority + (now - s.arrived) / limits_.aging;
}

bool step_scheduler::ensure_pages(sequence& s, std::uint32_t tokens) {
  const std::uint32_t wanted = page_pool::pages_for(tokens);
  while (wanted > s.pages.size()) {
    if (auto more = pages_.allocate(wanted - static_cast<std::uint32_t>(s.pages.size()))) {
      s.pages.insert(s.pages.end(), more->begin(), more->end());
      return true;
    }
    if (!preempt_for(s)) return false;
  }
  return true;
}

/// A paused sequence gives way, or else the newest running one of the lowest priority, but never to one that ranks
/// below it; and never one that this step works on already.
bool step_scheduler::preempt_for(const sequence& needy) {
  const auto victims = preemptible(needy);
  if (victims.empty()) return false;
  const auto victim = victims.front();
  if (!victim->paused() && !outranks(needy, *victim)) return false;
  preempt(victim);
  return true;
}

/// Frees what paused sequences hold until so many pages are free; nothing when that cannot do.
bool step_scheduler::reclaim_from_paused(std::uint32_t pages, const sequence& needy) {
  auto victims = preemptible(needy);
  std::erase_if(victims, [](const auto& it) { return !it->paused(); });
  std::size_t reclaimable = pages_.free();
  for (const auto& it : victims) reclaimable += it->pages.size();
  if (reclaimable < pages) return false;
  for (auto victim = victims.begin(); pages_.free() < pages; ++victim) preempt(*victim);
  return true;
}

/// Those that could give up pages, the first to do so first.
std::vector<step_scheduler::sequence_list::iterator> step_scheduler::preemptible(const sequence& needy) {
  std::vector<std::pair<bool, sequence_list::iterator>> found;  // paused once, since its client may read meanwhile
  for (auto it = running_.begin(); it != running_.end(); ++it) {
    if (it->pages.empty() || it->id == needy.id) continue;
    if (std::find(in_step_.begin(), in_step_.end(), it->id) == in_step_.end()) found.emplace_back(it->paused(), it);
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.first != b.first ? a.first : outranks(*b.second, *a.second); });
  std::vector<sequence_list::iterator> out;
  for (const auto& [paused, it] : found) out.push_back(it);
  return out;
}

void step_scheduler::preempt(sequence_list::iterator victim) {
  pages_.release_all(victim->pages);
  victim->computed = 0;
  ++preemptions_;
  waiting_.splice(waiting_.begin(), running_, victim);
}

void step_scheduler::schedule(sequence& s, std::uint32_t count, std::uint32_t& budget, std::vector<step_item>& items) {
  step_item item;
  item.id = s.id;
  item.first = s.computed;
  item.count = count;
  const std::uint32_t end = s.computed + count;
  item.samples = end == s.tokens.size() && s.max_new_tokens != 0;
  if (s.score_prompt) {
    item.score_from = std::max(s.scored, s.computed);
    item.score_to = std::max(item.score_from, std::min(end, s.prompt_tokens - 1));
  }
  items.push_back(item);
  in_step_.push_back(s.id);
  budget -= count;
  charge(s, count);
}

void step_scheduler::charge(const sequence& s, std::uint32_t tokens) { served_.find(s.tenant)->second += tokens; }

void step_scheduler::advance(const step_item& item) {
  sequence* s = find_running(item.id);
  if (s == nullptr) return;
  s->computed = item.first + item.count;
  s->scored = std::max(s->scored, item.score_to);
}

void step_scheduler::append(sequence_id id, token_id token) {
  if (sequence* s = find_running(id)) s->tokens.push_back(token);
}

void step_scheduler::remove(sequence_id id) {
  std::string tenant;
  for (auto* queue : {&running_, &waiting_}) {
    const auto it = find_in(*queue, id);
    if (it == queue->end()) continue;
    tenant = it->tenant;
    pages_.release_all(it->pages);
    queue->erase(it);
    const auto present = [&](const sequence& s) { return s.tenant == tenant; };
    if (std::none_of(running_.begin(), running_.end(), present) &&
        std::none_of(waiting_.begin(), waiting_.end(), present))
      served_.erase(tenant);
    return;
  }
}

void step_scheduler::forget_computed() {
  for (sequence& s : running_) {
    pages_.release_all(s.pages);
    s.computed = 0;
  }
  waiting_.splice(waiting_.begin(), running_);
}

const sequence* step_scheduler::find(sequence_id id) const {
  for (const auto* queue : {&running_, &waiting_})
    if (const auto it = find_in(*queue, id); it != queue->end()) return &*it;
  return nullptr;
}

sequence* step_scheduler::find_running(sequence_id id) {
  const auto it = find_in(running_, id);
  return it == running_.end() ? nullptr : &*it;
}

std::optional<steady_time> step_scheduler::wake_at() const {
  std::optional<steady_time> out;
  const auto earlier = [&](steady_time at) {
    if (at != no_deadline && (!out || at < *out)) out = at;
  };
  for (const sequence& s : running_) earlier(s.deadline);
  for (const sequence& s : waiting_) {
    earlier(s.deadline);
    if (s.queues()) earlier(s.queue_deadline);
    if (!s.started && !s.paused() && running_.empty()) earlier(s.arrived + limits_.max_wait);
  }
  return out;
}

}  // namespace troupe::engine
