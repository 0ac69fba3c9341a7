#include "actors/prompt_maker.hpp"

#include <gtest/gtest.h>

#include "running_service.hpp"

namespace troupe::actors::test {
namespace {

constexpr std::uint32_t context = 100;

prompt_maker a_maker(std::size_t memo = 4) {
  const auto model = tiny_model();
  return {model->text(), model->chat(), model->spec().vocab, context, memo};
}

TEST(PromptMaker, FillsTheContextToItsLastToken) {
  const auto maker = a_maker();
  EXPECT_EQ(maker.room_for(context - 1, 1)->max_new_tokens, 1U);
  EXPECT_EQ(maker.room_for(context - 1, std::nullopt)->max_new_tokens, 1U);
  EXPECT_EQ(maker.room_for(context, 0)->max_new_tokens, 0U) << "a prompt may be scored though nothing follows";
  EXPECT_EQ(maker.room_for(1, std::nullopt)->max_new_tokens, context - 1);
}

TEST(PromptMaker, SaysAllThreeNumbersWhenTheContextIsTooSmall) {
  const auto maker = a_maker();
  const auto room = maker.room_for(98, 3);
  ASSERT_FALSE(room);
  EXPECT_EQ(room.error().kind, error_kind::too_large);
  EXPECT_EQ(room.error().place, "max_tokens");
  for (const char* number : {"100", "98", "3"}) EXPECT_NE(room.error().message.find(number), std::string::npos);
  EXPECT_FALSE(maker.room_for(context, 1));
  EXPECT_FALSE(maker.room_for(context, std::nullopt));
  EXPECT_FALSE(maker.room_for(context + 1, 0));
}

TEST(PromptMaker, RefusesAnEmptyPrompt) {
  const auto room = a_maker().room_for(0, 5);
  ASSERT_FALSE(room);
  EXPECT_EQ(room.error().kind, error_kind::invalid);
  EXPECT_EQ(room.error().place, "prompt");
}

TEST(PromptMaker, RefusesIdsOutsideTheVocabularyAndNamesThePlace) {
  auto maker = a_maker();
  const auto vocab = static_cast<token_id>(tiny_model()->spec().vocab);
  for (const token_id wrong : {token_id{-1}, vocab}) {
    const auto ids = maker.tokens_of(std::vector<token_id>{0, wrong}, false, false, {});
    ASSERT_FALSE(ids);
    EXPECT_EQ(ids.error().kind, error_kind::invalid);
    EXPECT_EQ(ids.error().place, "prompt[1]");
  }
  EXPECT_TRUE(maker.tokens_of(std::vector<token_id>{0, vocab - 1}, false, false, {}));
}

TEST(PromptMaker, RefusesATextThatCannotFitBeforeItIsTokenized) {
  auto maker = a_maker();
  const auto ids = maker.tokens_of(std::string(10'000'000, 'a'), false, false, {});
  ASSERT_FALSE(ids);
  EXPECT_EQ(ids.error().kind, error_kind::too_large);
}

TEST(PromptMaker, RemembersTextsApartFromHowTheyAreRead) {
  auto maker = a_maker(1);
  const auto& text = tiny_model()->text();
  for (int again = 0; again < 2; ++again)
    for (const bool special : {true, false}) {
      const auto ids = maker.tokens_of(std::string("hello"), special, false, {});
      ASSERT_TRUE(ids);
      EXPECT_EQ(*ids, text.encode("hello", special, model::special_tokens::as_text));
    }
}

TEST(PromptMemo, DropsTheLeastRecentlyUsed) {
  prompt_memo memo(2);
  const auto some = std::make_shared<const std::vector<token_id>>();
  memo.store("a", some);
  memo.store("b", some);
  EXPECT_TRUE(memo.find("a"));
  memo.store("c", some);
  EXPECT_TRUE(memo.find("a"));
  EXPECT_FALSE(memo.find("b"));
  prompt_memo none(0);
  none.store("a", some);
  EXPECT_FALSE(none.find("a"));
}

TEST(PromptMemo, StaysWithinItsBytes) {
  prompt_memo memo(1000, 3200);
  const auto ids = std::make_shared<const std::vector<token_id>>(20);  // 80 bytes, and 20 for the key
  for (int i = 0; i < 100; ++i) memo.store("prompt " + std::to_string(100 + i), ids);
  EXPECT_TRUE(memo.find("prompt 199"));
  EXPECT_TRUE(memo.find("prompt 168"));
  EXPECT_FALSE(memo.find("prompt 167"));
  memo.store(std::string(100, 'x'), ids);
  EXPECT_FALSE(memo.find(std::string(100, 'x'))) << "larger than a sixteenth of all";
}

}  // namespace
}  // namespace troupe::actors::test
