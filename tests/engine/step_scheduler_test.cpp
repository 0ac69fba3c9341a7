#include "engine/step_scheduler.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace troupe::engine {
namespace {

using std::chrono::milliseconds;

const steady_time start{std::chrono::hours(1)};

sequence make(std::uint64_t id, std::uint32_t prompt, std::uint32_t answer, const std::string& tenant = "",
              int priority = 0) {
  sequence s;
  s.id = sequence_id{id};
  s.tenant = tenant;
  s.priority = priority;
  s.tokens.assign(prompt, 7);
  s.prompt_tokens = prompt;
  s.max_new_tokens = answer;
  return s;
}

scheduler_limits limits(std::uint32_t batch, std::uint32_t tokens, milliseconds wait = milliseconds(0)) {
  return {batch, tokens, wait, milliseconds(10'000)};
}

/// Computes a step: what a backend would do, with token 9 for each that samples.
void compute(step_scheduler& scheduler, const std::vector<step_item>& items) {
  for (const auto& item : items) {
    scheduler.advance(item);
    if (item.samples) scheduler.append(item.id, 9);
  }
}

std::vector<std::uint64_t> ids_of(const std::vector<step_item>& items) {
  std::vector<std::uint64_t> out;
  for (const auto& item : items) out.push_back(item.id.value);
  return out;
}

TEST(StepScheduler, LetsAFirstBatchFillAndNoLongerThanItsWait) {
  page_pool pages(100);
  step_scheduler scheduler(limits(2, 64, milliseconds(50)), pages);
  ASSERT_TRUE(scheduler.add(make(1, 4, 4), start));
  EXPECT_TRUE(scheduler.plan(start).empty());
  EXPECT_EQ(scheduler.wake_at(), start + milliseconds(50));
  EXPECT_EQ(scheduler.plan(start + milliseconds(50)).size(), 1U);
}

TEST(StepScheduler, IsNotWokenForOneWhoseClientDoesNotRead) {
  page_pool pages(100);
  step_scheduler scheduler(limits(2, 64, milliseconds(50)), pages);
  auto unread = make(1, 4, 4);
  unread.window = std::make_shared<flow_window>(1);
  unread.window->add(1);
  ASSERT_TRUE(scheduler.add(std::move(unread), start));
  EXPECT_TRUE(scheduler.plan(start + milliseconds(60)).empty());
  EXPECT_EQ(scheduler.wake_at(), std::nullopt);
}

TEST(StepScheduler, StartsAtOnceWhenTheBatchIsFull) {
  page_pool pages(100);
  step_scheduler scheduler(limits(2, 64, milliseconds(50)), pages);
  ASSERT_TRUE(scheduler.add(make(1, 4, 4), start));
  ASSERT_TRUE(scheduler.add(make(2, 4, 4), start));
  EXPECT_EQ(scheduler.plan(start).size(), 2U);
}

TEST(StepScheduler, JoinsARunningBatchWithoutWaiting) {
  page_pool pages(100);
  step_scheduler scheduler(limits(4, 64, milliseconds(50)), pages);
  ASSERT_TRUE(scheduler.add(make(1, 4, 4), start));
  compute(scheduler, scheduler.plan(start + milliseconds(50)));
  ASSERT_TRUE(scheduler.add(make(2, 4, 4), start + milliseconds(51)));
  EXPECT_EQ(ids_of(scheduler.plan(start + milliseconds(51))), (std::vector<std::uint64_t>{1, 2}));
}

TEST(StepScheduler, DecodesBeforeItGoesOnWithALongPrefill) {
  page_pool pages(100);
  step_scheduler scheduler(limits(4, 16), pages);
  ASSERT_TRUE(scheduler.add(make(1, 4, 8), start));
  compute(scheduler, scheduler.plan(start));
  ASSERT_TRUE(scheduler.add(make(2, 100, 8), start));
  const auto items = scheduler.plan(start);
  ASSERT_EQ(ids_of(items), (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(items[0].count, 1U);
  EXPECT_TRUE(items[0].samples);
  EXPECT_EQ(items[1].count, 15U);
  EXPECT_FALSE(items[1].samples);
  compute(scheduler, items);
  const auto next = scheduler.plan(start);
  EXPECT_EQ(ids_of(next), (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(next[1].first, 15U);
}

TEST(StepScheduler, RefusesWhatCanNeverFit) {
  page_pool pages(4);
  step_scheduler scheduler(limits(4, 64), pages);
  const auto refused = scheduler.add(make(1, 60, 10), start);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, error_kind::too_large);
  EXPECT_TRUE(scheduler.add(make(2, 60, 4), start));
}

TEST(StepScheduler, PreemptsTheNewestWhenPagesRunOutAndResumesIt) {
  page_pool pages(4);
  step_scheduler scheduler(limits(4, 256), pages);
  ASSERT_TRUE(scheduler.add(make(1, 31, 20), start));
  ASSERT_TRUE(scheduler.add(make(2, 31, 20), start));
  compute(scheduler, scheduler.plan(start));  // both hold two pages
  compute(scheduler, scheduler.plan(start));  // token 32
  const auto items = scheduler.plan(start);   // token 33 needs a third page
  EXPECT_EQ(ids_of(items), (std::vector<std::uint64_t>{1}));
  EXPECT_EQ(scheduler.preemptions(), 1U);
  compute(scheduler, items);
  scheduler.remove(sequence_id{1});
  const auto resumed = scheduler.plan(start);
  ASSERT_EQ(ids_of(resumed), (std::vector<std::uint64_t>{2}));
  EXPECT_EQ(resumed[0].first, 0U);
  EXPECT_EQ(resumed[0].count, 33U);  // its log: prompt and two tokens
  EXPECT_TRUE(resumed[0].samples);
}

TEST(StepScheduler, PausesWhatItsClientDoesNotRead) {
  page_pool pages(100);
  step_scheduler scheduler(limits(4, 64), pages);
  auto slow = make(1, 4, 8);
  slow.window = std::make_shared<flow_window>(10);
  const auto window = slow.window;
  ASSERT_TRUE(scheduler.add(std::move(slow), start));
  ASSERT_TRUE(scheduler.add(make(2, 4, 8), start));
  compute(scheduler, scheduler.plan(start));
  window->add(10);
  EXPECT_EQ(ids_of(scheduler.plan(start)), (std::vector<std::uint64_t>{2}));
  window->release(10);
  EXPECT_EQ(ids_of(scheduler.plan(start)), (std::vector<std::uint64_t>{1, 2}));
}

/// A sequence whose client has stopped reading.
sequence unread(std::uint64_t id, std::uint32_t prompt, std::uint32_t answer, std::shared_ptr<flow_window>& window) {
  sequence s = make(id, prompt, answer);
  if (!window) window = std::make_shared<flow_window>(1);
  s.window = window;
  return s;
}

TEST(StepScheduler, GivesThePlacesOfUnreadStreamsToOthers) {
  page_pool pages(100);
  step_scheduler scheduler(limits(2, 64), pages);
  std::shared_ptr<flow_window> window;
  ASSERT_TRUE(scheduler.add(unread(1, 4, 8, window), start));
  ASSERT_TRUE(scheduler.add(unread(2, 4, 8, window), start));
  compute(scheduler, scheduler.plan(start));
  window->add(1);
  ASSERT_TRUE(scheduler.add(make(3, 4, 8), start));
  ASSERT_TRUE(scheduler.add(make(4, 4, 8), start));
  compute(scheduler, scheduler.plan(start));
  EXPECT_EQ(ids_of(scheduler.plan(start)), (std::vector<std::uint64_t>{3, 4}));
  window->release(1);  // all four can work: the step holds two, those that came first
  EXPECT_EQ(ids_of(scheduler.plan(start)), (std::vector<std::uint64_t>{1, 2}));
}

TEST(StepScheduler, TakesPagesFromUnreadStreamsToLetOthersIn) {
  page_pool pages(4);
  step_scheduler scheduler(limits(4, 256), pages);
  std::shared_ptr<flow_window> window;
  ASSERT_TRUE(scheduler.add(unread(1, 40, 8, window), start));
  compute(scheduler, scheduler.plan(start));
  window->add(1);
  ASSERT_TRUE(scheduler.add(make(2, 60, 4), start));
  EXPECT_EQ(ids_of(scheduler.plan(start)), (std::vector<std::uint64_t>{2}));
  EXPECT_TRUE(scheduler.find(sequence_id{1})->pages.empty());
  scheduler.remove(sequence_id{2});
  EXPECT_TRUE(scheduler.plan(start).empty());  // still unread
  window->release(1);
  const auto resumed = scheduler.plan(start);
  ASSERT_EQ(ids_of(resumed), (std::vector<std::uint64_t>{1}));
  EXPECT_EQ(resumed[0].count, 41U);
}

TEST(StepScheduler, KeepsThePagesOfUnreadStreamsWhenTheyWouldNotHelp) {
  page_pool pages(4);
  step_scheduler scheduler(limits(4, 256), pages);
  std::shared_ptr<flow_window> window;
  ASSERT_TRUE(scheduler.add(unread(1, 10, 8, window), start));
  ASSERT_TRUE(scheduler.add(make(2, 20, 4), start));
  compute(scheduler, scheduler.plan(start));
  window->add(1);
  ASSERT_TRUE(scheduler.add(make(3, 60, 4), start));
  EXPECT_EQ(ids_of(scheduler.plan(start)), (std::vector<std::uint64_t>{2}));
  EXPECT_EQ(scheduler.find(sequence_id{1})->pages.size(), 1U);
}

TEST(StepScheduler, DropsTheLateAndTheCancelledBeforeAnyWork) {
  page_pool pages(100);
  step_scheduler scheduler(limits(4, 64), pages);
  auto cancelled = make(1, 4, 8);
  cancelled.cancel.cancel();
  auto late = make(2, 4, 8);
  late.deadline = start;
  auto queued = make(3, 4, 8);
  queued.queue_deadline = start;
  for (auto* s : {&cancelled, &late, &queued}) ASSERT_TRUE(scheduler.add(std::move(*s), start));
  const auto dropped = scheduler.sweep(start);
  ASSERT_EQ(dropped.size(), 3U);
  EXPECT_EQ(dropped[0].reason, drop_reason::cancelled);
  EXPECT_EQ(dropped[1].reason, drop_reason::deadline);
  EXPECT_EQ(dropped[2].reason, drop_reason::queue_deadline);
  EXPECT_TRUE(scheduler.idle());
}

TEST(StepScheduler, ForgetsTheQueueDeadlineOnceItHasBegun) {
  page_pool pages(100);
  step_scheduler scheduler(limits(4, 64), pages);
  auto s = make(1, 4, 8);
  s.queue_deadline = start + milliseconds(5);
  ASSERT_TRUE(scheduler.add(std::move(s), start));
  s = make(2, 4, 8);
  s.deadline = start + milliseconds(200);
  compute(scheduler, scheduler.plan(start));
  ASSERT_TRUE(scheduler.add(std::move(s), start));
  EXPECT_TRUE(scheduler.sweep(start + milliseconds(100)).empty());
  compute(scheduler, scheduler.plan(start));
  auto unstarted = make(3, 4, 8);
  unstarted.deadline = start + milliseconds(200);
  ASSERT_TRUE(scheduler.add(std::move(unstarted), start));
  const auto late = scheduler.sweep(start + milliseconds(200));
  ASSERT_EQ(late.size(), 2U);
  EXPECT_TRUE(late[0].started);
  EXPECT_FALSE(late[1].started);
}

TEST(StepScheduler, SharesPlacesBetweenTenants) {
  page_pool pages(1000);
  step_scheduler scheduler(limits(2, 256), pages);
  for (std::uint64_t i = 0; i < 10; ++i) ASSERT_TRUE(scheduler.add(make(i, 32, 4, "greedy"), start));
  ASSERT_TRUE(scheduler.add(make(100, 32, 4, "modest"), start));
  EXPECT_EQ(ids_of(scheduler.plan(start)), (std::vector<std::uint64_t>{0, 100}));
}

TEST(StepScheduler, PrefersPriorityButLetsTheWaitingAge) {
  page_pool pages(1000);
  step_scheduler scheduler(limits(1, 64), pages);
  ASSERT_TRUE(scheduler.add(make(1, 4, 1, "", 0), start));
  ASSERT_TRUE(scheduler.add(make(2, 4, 1, "", 1), start + milliseconds(1)));
  EXPECT_EQ(ids_of(scheduler.plan(start + milliseconds(1))), (std::vector<std::uint64_t>{2}));
  scheduler.remove(sequence_id{2});
  ASSERT_TRUE(scheduler.add(make(3, 4, 1, "", 1), start + milliseconds(25'000)));
  EXPECT_EQ(ids_of(scheduler.plan(start + milliseconds(25'000))), (std::vector<std::uint64_t>{1}));
}

TEST(StepScheduler, WorksOnASuspectAloneAndOnAllWhenItCannotGoOn) {
  page_pool pages(4);
  step_scheduler scheduler(limits(4, 256), pages);
  ASSERT_TRUE(scheduler.add(make(1, 40, 8), start));
  ASSERT_TRUE(scheduler.add(make(2, 40, 8), start));
  compute(scheduler, scheduler.plan(start));
  EXPECT_EQ(ids_of(scheduler.plan(start, sequence_id{2})), (std::vector<std::uint64_t>{1}));
}

TEST(StepScheduler, AsksForThePromptsLogitsOnceEvenAfterAPreemption) {
  page_pool pages(100);
  step_scheduler scheduler(limits(4, 4), pages);
  auto s = make(1, 10, 4);
  s.score_prompt = true;
  ASSERT_TRUE(scheduler.add(std::move(s), start));
  std::uint32_t scored = 0;
  for (int step = 0; step < 2; ++step) {
    const auto items = scheduler.plan(start);
    scored += items[0].score_to - items[0].score_from;
    compute(scheduler, items);
  }
  scheduler.forget_computed();
  while (scheduler.find(sequence_id{1})->generated() == 0) {
    const auto items = scheduler.plan(start);
    ASSERT_EQ(items.size(), 1U);
    scored += items[0].score_to - items[0].score_from;
    compute(scheduler, items);
  }
  EXPECT_EQ(scored, 9U);
}

/// A world of random clients, in virtual time: whatever happens, the rules hold.
class world {
 public:
  world(unsigned seed, std::uint32_t pages, scheduler_limits with)
      : random_(seed), limits_(with), pool_(pages), scheduler_(with, pool_) {}

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      now_ += milliseconds(random_() % 20);
      if (alive_.size() < 60 && random_() % 3 == 0) arrive();
      if (!alive_.empty() && random_() % 40 == 0) anyone().cancel.cancel();
      if (!alive_.empty() && random_() % 10 == 0) toggle(anyone());
      if (random_() % 500 == 0) scheduler_.forget_computed();
      for (const auto& dropped : scheduler_.sweep(now_)) alive_.erase(dropped.id.value);
      take_step();
      if (::testing::Test::HasFailure()) return;
    }
  }

  /// No more arrivals: everything must end.
  void finish() {
    for (auto& [id, c] : alive_)
      if (c.window->full()) toggle(c);
    for (int i = 0; i < 200'000 && !alive_.empty(); ++i) {
      now_ += milliseconds(60);
      take_step();
    }
    EXPECT_TRUE(alive_.empty()) << alive_.size() << " sequences never end";
    EXPECT_EQ(pool_.used(), 0U);
  }

  std::uint64_t steps() const { return computed_; }

 private:
  struct client {
    cancel_token cancel;
    std::uint32_t wanted;
    std::shared_ptr<flow_window> window;
  };

  client& anyone() { return std::next(alive_.begin(), static_cast<std::ptrdiff_t>(random_() % alive_.size()))->second; }
  /// Stops reading, or reads on.
  static void toggle(client& c) { c.window->full() ? c.window->release(1) : c.window->add(1); }

  void arrive() {
    const std::uint64_t id = next_++;
    auto s = make(id, 1 + random_() % 120, 1 + random_() % 40, std::string(1, static_cast<char>('a' + random_() % 3)),
                  static_cast<int>(random_() % 3));
    if (random_() % 10 == 0) s.deadline = now_ + milliseconds(random_() % 4000);
    s.window = std::make_shared<flow_window>(1);
    const client c{s.cancel, s.max_new_tokens, s.window};
    if (scheduler_.add(std::move(s), now_)) alive_.emplace(id, c);
  }

  void take_step() {
    const auto items = scheduler_.plan(now_);
    std::uint32_t rows = 0;
    std::set<std::uint64_t> seen;
    std::set<page_index> held;
    for (const auto& item : items) {
      rows += item.count;
      ASSERT_GE(item.count, 1U);
      ASSERT_TRUE(seen.insert(item.id.value).second) << "twice in a step";
      const sequence* s = scheduler_.find(item.id);
      ASSERT_NE(s, nullptr);
      ASSERT_FALSE(s->paused());
      ASSERT_EQ(item.first, s->computed);
      ASSERT_GE(s->pages.size() * page_tokens, item.first + item.count);
      for (const page_index page : s->pages) ASSERT_TRUE(held.insert(page).second) << "a page with two owners";
    }
    ASSERT_LE(rows, limits_.step_tokens);
    ASSERT_LE(items.size(), limits_.max_batch);
    for (const auto& item : items) {
      ++computed_;
      scheduler_.advance(item);
      if (!item.samples) continue;
      scheduler_.append(item.id, 9);
      if (scheduler_.find(item.id)->generated() < alive_.at(item.id.value).wanted) continue;
      scheduler_.remove(item.id);
      alive_.erase(item.id.value);
    }
  }

  std::mt19937 random_;
  scheduler_limits limits_;
  page_pool pool_;
  step_scheduler scheduler_;
  steady_time now_ = start;
  std::map<std::uint64_t, client> alive_;
  std::uint64_t next_ = 1;
  std::uint64_t computed_ = 0;
};

TEST(StepScheduler, KeepsItsRulesWithPlentyOfPages) {
  world w(1, 2000, limits(8, 64, milliseconds(50)));
  w.run(6'000);
  w.finish();
  EXPECT_GT(w.steps(), 6'000U);
}

TEST(StepScheduler, KeepsItsRulesWhenPagesAreScarce) {
  for (unsigned seed = 2; seed < 8; ++seed) {
    world w(seed, 11 + seed, limits(8, 48, milliseconds(10)));
    w.run(3'000);
    w.finish();
  }
}

}  // namespace
}  // namespace troupe::engine
