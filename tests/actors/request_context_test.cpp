#include "actors/request_context.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace troupe::actors {
namespace {

struct heard {
  std::vector<generation_event> events;
  unsigned ends = 0;

  std::shared_ptr<request_context> make(generation_request request = {}) {
    return std::make_shared<request_context>(
        std::move(request), [this](generation_event event) { events.push_back(std::move(event)); }, steady_time{},
        [this](request_context&) { ++ends; });
  }
};

generation_delta delta(std::uint32_t choice, std::string text) { return {choice, std::move(text), {}}; }
std::string text_of(const heard& h, std::uint32_t choice) {
  std::string out;
  for (const auto& event : h.events)
    if (const auto* d = std::get_if<generation_delta>(&event); d != nullptr && d->choice == choice) out += d->text;
  return out;
}

TEST(RequestContext, LeavesOutWhatWentOutBeforeItBeganAgainForEachChoice) {
  heard h;
  const auto context = h.make();
  context->emit(generation_started{});
  for (const char* text : {"a", "b"}) context->emit(delta(0, text));
  context->emit(delta(1, "x"));
  context->begin_again();
  context->emit(generation_started{});
  context->emit(delta(0, "a"));
  context->begin_again();  // it was lost once more before it had come as far
  context->emit(generation_started{});
  for (const char* text : {"x", "y", "z"}) context->emit(delta(1, text));
  for (const char* text : {"a", "b", "c"}) context->emit(delta(0, text));
  context->emit(generation_finished{});
  EXPECT_EQ(text_of(h, 0), "abc");
  EXPECT_EQ(text_of(h, 1), "xyz");
  EXPECT_EQ(h.events.size(), 8U);
}

TEST(RequestContext, RecordsAnAnswerOnlyFromItsBeginning) {
  heard h;
  const auto context = h.make();
  EXPECT_TRUE(context->record_events(1 << 20));
  context->emit(generation_started{});
  context->emit(delta(0, "a"));
  EXPECT_EQ(context->recorded().size(), 2U);
  EXPECT_FALSE(context->record_events(1 << 20));
}

TEST(RequestContext, RecordsNothingOfAnAnswerThatIsTooLargeToKeep) {
  heard h;
  const auto context = h.make();
  EXPECT_TRUE(context->record_events(10'000));
  context->emit(generation_started{});
  context->emit(delta(0, "a"));
  EXPECT_EQ(context->recorded().size(), 2U);
  context->emit(delta(0, std::string(10'000, 'b').c_str()));
  context->emit(delta(0, "c"));
  EXPECT_TRUE(context->recorded().empty());
  EXPECT_EQ(h.events.size(), 4U) << "the client gets all of it";
}

TEST(RequestContext, EndsOnceAndSaysNothingAfterwards) {
  heard h;
  const auto context = h.make();
  context->fail({error_kind::internal, "first", {}});
  context->fail({error_kind::internal, "second", {}});
  context->finish({});
  context->emit(delta(0, "late"));
  EXPECT_EQ(h.events.size(), 1U);
  EXPECT_EQ(h.ends, 1U);
  EXPECT_TRUE(context->ended());
}

TEST(RequestContext, ReportsItsEndEvenWhenTheSinkThrows) {
  unsigned ends = 0;
  const auto context = std::make_shared<request_context>(
      generation_request{}, [](const generation_event&) { throw std::runtime_error("a sink throws"); }, steady_time{},
      [&](request_context&) { ++ends; });
  EXPECT_THROW(context->finish({}), std::runtime_error);
  EXPECT_EQ(ends, 1U);
}

TEST(StillWanted, NamesTheStageOfAPassedDeadlineAndTheQueueBeforeAnyStep) {
  const steady_time now = steady_time{} + std::chrono::hours(1);
  generation_request request;
  request.deadline = now;
  heard late;
  EXPECT_FALSE(still_wanted(*late.make(request), "preparer", now));
  const auto& failed = std::get<generation_failed>(late.events.at(0)).failure;
  EXPECT_EQ(failed.kind, error_kind::deadline_exceeded);
  EXPECT_EQ(failed.place, "preparer");

  generation_request queued;
  queued.queue_deadline = now;
  heard waited;
  EXPECT_TRUE(still_wanted(*waited.make(queued), "preparer", now - std::chrono::seconds(1)));
  EXPECT_FALSE(still_wanted(*waited.make(queued), "preparer", now));
  EXPECT_EQ(std::get<generation_failed>(waited.events.at(0)).failure.place, "queue");

  queued.call = std::make_shared<call_state>();
  *queued.call->begun = true;
  heard begun;
  EXPECT_TRUE(still_wanted(*begun.make(queued), "preparer", now));
}

TEST(WorkMark, StaysWhenAStageDiesOfTheRequest) {
  heard h;
  const auto context = h.make();
  { const work_mark mark(*context, hop::preparer); }
  EXPECT_EQ(context->in_work.load(), hop::none);
  try {
    const work_mark mark(*context, hop::preparer);
    throw std::runtime_error("the stage dies");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(context->in_work.load(), hop::preparer);
}

TEST(WorkMark, DoesNotWipeThatOfTheNextStage) {
  heard h;
  const auto context = h.make();
  {
    const work_mark mark(*context, hop::preparer);
    context->in_work = hop::batch_collector;
  }
  EXPECT_EQ(context->in_work.load(), hop::batch_collector);
}

}  // namespace
}  // namespace troupe::actors
