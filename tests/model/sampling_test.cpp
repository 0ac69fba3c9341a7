#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "model/sampling/philox.hpp"
#include "model/sampling/sampler.hpp"

namespace troupe::model {
namespace {

using ::testing::ElementsAre;

constexpr float infinity = std::numeric_limits<float>::infinity();

std::vector<float> random_logits(std::size_t count, unsigned seed, float spread = 3.0F) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0F, spread);
  std::vector<float> logits(count);
  for (auto& l : logits) l = normal(random);
  return logits;
}

token_id draw_one(const sampling_params& params, const std::vector<float>& logits) {
  return sampler(params, {}, {}, logits.size()).sample(logits).id;
}

// The known answers published with the generator (Random123, kat_vectors).
TEST(Philox, GivesThePublishedAnswers) {
  EXPECT_THAT(philox4x32({0, 0, 0, 0}, {0, 0}), ElementsAre(0x6627e8d5U, 0xe169c58dU, 0xbc57ac4cU, 0x9b00dbd8U));
  const std::uint32_t ones = 0xffffffffU;
  EXPECT_THAT(philox4x32({ones, ones, ones, ones}, {ones, ones}),
              ElementsAre(0x408f276dU, 0x41c83b0eU, 0xa20bc7c6U, 0x6d5451fdU));
  EXPECT_THAT(philox4x32({0x243f6a88U, 0x85a308d3U, 0x13198a2eU, 0x03707344U}, {0xa4093822U, 0x299f31d0U}),
              ElementsAre(0xd16cfe09U, 0x94fdccebU, 0x5001e420U, 0x24126ea1U));
}

TEST(Sampler, IsGreedyAtAndNearTemperatureZeroWhateverElseIsSet) {
  const auto logits = random_logits(1000, 1);
  const auto best = static_cast<token_id>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  for (const double temperature : {0.0, 1e-9, 1e-5, 9.9e-5})
    for (const double top_p : {1.0, 0.0})
      for (const int top_k : {0, 1, -1, 40})
        for (const double min_p : {0.0, 1.0}) {
          sampling_params params;
          params.temperature = temperature;
          params.top_p = top_p;
          params.top_k = top_k;
          params.min_p = min_p;
          EXPECT_EQ(draw_one(params, logits), best);
        }
}

TEST(Sampler, PrefersTheLowestIdAmongEquals) {
  sampling_params params;
  params.temperature = 0.0;
  EXPECT_EQ(draw_one(params, {1.0F, 2.0F, 2.0F, 0.0F}), 1);
}

TEST(Sampler, KeepsOneCandidateWhenTopPIsZero) {
  sampling_params params;
  params.top_p = 0.0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    params.seed = seed;
    EXPECT_EQ(draw_one(params, {0.0F, 1.0F, 5.0F, 4.9F}), 2);
  }
}

TEST(Sampler, ForcesAndBansByBias) {
  sampling_params params;
  params.logit_bias = {{3, 100.0F}};
  EXPECT_EQ(draw_one(params, {50.0F, 0.0F, 0.0F, -50.0F}), 3);
  params.temperature = 0.0;
  params.logit_bias = {{0, -100.0F}};
  EXPECT_EQ(draw_one(params, {500.0F, 1.0F, 0.0F, 0.0F}), 1);
}

TEST(Sampler, BansEndTokensBeforeMinTokens) {
  sampling_params params;
  params.temperature = 0.0;
  params.min_tokens = 2;
  const std::vector<token_id> end{2};
  const std::vector<float> logits{0.0F, 1.0F, 9.0F};
  sampler s(params, {}, end, logits.size());
  EXPECT_EQ(s.sample(logits).id, 1);
  EXPECT_EQ(s.sample(logits).id, 1);
  EXPECT_EQ(s.sample(logits).id, 2);
}

TEST(Sampler, PenalisesRepetitionInPromptAndAnswerAndPresenceInTheAnswerAlone) {
  sampling_params params;
  params.temperature = 0.0;
  params.repetition_penalty = 2.0;
  const std::vector<token_id> prompt{0};
  const std::vector<float> logits{3.0F, 2.0F, 1.4F};
  sampler repetition(params, prompt, {}, logits.size());
  EXPECT_EQ(repetition.sample(logits).id, 1);  // 1.5, 2, 1.4
  EXPECT_EQ(repetition.sample(logits).id, 0);  // 1.5, 1, 1.4
  params.repetition_penalty = 1.0;
  params.presence_penalty = 1.5;
  sampler presence(params, prompt, {}, logits.size());
  EXPECT_EQ(presence.sample(logits).id, 0);
  EXPECT_EQ(presence.sample(logits).id, 1);
}

TEST(Sampler, SurvivesNaNsAndNothingButMinusInfinity) {
  sampling_params params;
  params.top_logprobs = 2;
  const std::vector<float> logits{std::nanf(""), 1.0F, -infinity, std::nanf("")};
  const auto drawn = sampler(params, {}, {}, 4).sample(logits);
  EXPECT_EQ(drawn.id, 1);
  EXPECT_TRUE(std::isfinite(*drawn.logprob));
  for (const auto& entry : drawn.top) EXPECT_GE(entry.logprob, -9999.0F);
  const std::vector<float> hopeless(4, -infinity);
  const auto any = sampler(params, {}, {}, 4).sample(hopeless);
  EXPECT_EQ(any.id, 0);
  EXPECT_EQ(*any.logprob, -9999.0F);
}

TEST(Sampler, ScoresByTheModelsOwnDistribution) {
  sampling_params params;
  params.temperature = 0.0;
  params.top_logprobs = 2;
  params.logit_bias = {{0, 100.0F}};
  const std::vector<float> logits{0.0F, std::log(3.0F)};
  const auto drawn = sampler(params, {}, {}, 2).sample(logits);
  EXPECT_EQ(drawn.id, 0);
  EXPECT_NEAR(*drawn.logprob, std::log(0.25), 1e-6);
  ASSERT_EQ(drawn.top.size(), 2U);
  EXPECT_EQ(drawn.top[0].id, 1);
  EXPECT_NEAR(drawn.top[0].logprob, std::log(0.75), 1e-6);
}

TEST(Sampler, DrawsTheSameAfterAReplay) {
  const auto logits = random_logits(500, 2);
  sampling_params params;
  params.seed = 99;
  params.frequency_penalty = 0.7;
  sampler whole(params, {}, {}, logits.size());
  std::vector<token_id> tokens;
  for (int i = 0; i < 40; ++i) tokens.push_back(whole.sample(logits).id);
  sampler resumed(params, {}, {}, logits.size());
  for (int i = 0; i < 17; ++i) resumed.accept(tokens[static_cast<std::size_t>(i)]);
  for (std::size_t i = 17; i < tokens.size(); ++i) EXPECT_EQ(resumed.sample(logits).id, tokens[i]);
}

TEST(Sampler, GivesChoicesStreamsOfTheirOwn) {
  const auto logits = random_logits(500, 3, 0.5F);
  std::vector<std::vector<token_id>> answers;
  for (std::uint32_t choice = 0; choice < 3; ++choice) {
    sampling_params params;
    params.seed = 5;
    params.choice = choice;
    sampler s(params, {}, {}, logits.size());
    answers.emplace_back();
    for (int i = 0; i < 10; ++i) answers.back().push_back(s.sample(logits).id);
  }
  EXPECT_NE(answers[0], answers[1]);
  EXPECT_NE(answers[1], answers[2]);
}

}  // namespace
}  // namespace troupe::model
