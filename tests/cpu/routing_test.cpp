#include "cpu/routing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace troupe::cpu {
namespace {

struct choice {
  std::vector<std::uint32_t> experts;
  std::vector<float> weights;
};

choice choose(std::vector<float> probabilities, std::uint32_t top_k, bool normalize) {
  model::moe_spec spec;
  spec.experts = static_cast<std::uint32_t>(probabilities.size());
  spec.top_k = top_k;
  spec.normalize_top_k = normalize;
  choice c{std::vector<std::uint32_t>(top_k), std::vector<float>(top_k)};
  std::vector<float> scratch(choice_scratch(spec));
  choose_experts(spec, probabilities, {}, scratch, c.experts.data(), c.weights.data());
  return c;
}

TEST(Routing, PicksTheLargestInFallingOrder) {
  const auto c = choose({0.1F, 0.4F, 0.05F, 0.3F, 0.15F}, 3, false);
  EXPECT_EQ(c.experts, (std::vector<std::uint32_t>{1, 3, 4}));
  EXPECT_EQ(c.weights, (std::vector<float>{0.4F, 0.3F, 0.15F}));
}

TEST(Routing, DividesByTheSumWhereTheModelNormalises) {
  const auto c = choose({0.5F, 0.25F, 0.125F, 0.125F}, 2, true);
  EXPECT_FLOAT_EQ(c.weights[0], 2.0F / 3.0F);
  EXPECT_FLOAT_EQ(c.weights[1], 1.0F / 3.0F);
}

TEST(Routing, PrefersTheLowerIndexWhereEqual) {
  EXPECT_EQ(choose({0.25F, 0.25F, 0.25F, 0.25F}, 3, true).experts, (std::vector<std::uint32_t>{0, 1, 2}));
}

TEST(Routing, PicksDifferentExpertsEvenForScoresThatAreNotNumbers) {
  const auto c = choose({NAN, NAN, NAN}, 2, true);
  EXPECT_EQ(c.experts, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_TRUE(std::isnan(c.weights[0]));
}

choice choose_biased(std::vector<float> scores, std::vector<float> bias, model::moe_spec spec) {
  spec.experts = static_cast<std::uint32_t>(scores.size());
  choice c{std::vector<std::uint32_t>(spec.top_k), std::vector<float>(spec.top_k)};
  std::vector<float> scratch(choice_scratch(spec));
  choose_experts(spec, scores, bias, scratch, c.experts.data(), c.weights.data());
  return c;
}

TEST(Routing, ChoosesWithTheBiasAndWeighsWithoutIt) {
  const auto c = choose_biased({0.5F, 0.75F, 0.25F, 0.125F}, {0.0F, -0.5F, 0.5F, 0.0F},
                               {.top_k = 2, .scoring = model::router_scoring::sigmoid, .routed_scale = 3.0F});
  EXPECT_EQ(c.experts, (std::vector<std::uint32_t>{2, 0}));
  EXPECT_FLOAT_EQ(c.weights[0], 1.0F);
  EXPECT_FLOAT_EQ(c.weights[1], 2.0F);
}

TEST(Routing, ChoosesAmongTheGroupsWithTheBestOrTheTwoBestExperts) {
  const std::vector<float> scores{0.9F, 0.0F, 0.5F, 0.5F, 0.1F, 0.2F};
  model::moe_spec spec{.top_k = 2, .groups = 3, .top_groups = 1, .normalize_top_k = false};
  EXPECT_EQ(choose_biased(scores, {}, spec).experts, (std::vector<std::uint32_t>{0, 1}));
  spec.group_score = model::group_scoring::two_best;
  EXPECT_EQ(choose_biased(scores, {}, spec).experts, (std::vector<std::uint32_t>{2, 3}));
  spec.top_groups = 2;
  EXPECT_EQ(choose_biased(scores, {}, spec).experts, (std::vector<std::uint32_t>{0, 2}));
}

TEST(Routing, TakesTheFirstGroupsWhereEqualAndWhereScoresAreNotNumbers) {
  const model::moe_spec spec{.top_k = 2, .groups = 3, .top_groups = 2, .group_score = model::group_scoring::two_best};
  EXPECT_EQ(choose_biased(std::vector<float>(6, 0.5F), {}, spec).experts, (std::vector<std::uint32_t>{0, 1}));
  const auto c = choose_biased(std::vector<float>(6, NAN), {}, spec);
  EXPECT_EQ(c.experts, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_TRUE(std::isnan(c.weights[0]));
}

TEST(Routing, SurvivesScoresThatAreAllZero) {
  const auto c = choose_biased({0.0F, 0.0F}, {}, {.top_k = 1, .scoring = model::router_scoring::sigmoid});
  EXPECT_EQ(c.weights[0], 0.0F);
}

TEST(Routing, GroupsTokensByExpertAndFindsThemAgain) {
  const std::vector<std::uint32_t> chosen{3, 0, 3, 1, 0, 3, 1, 3};  // 4 tokens, 2 choices each
  expert_groups g;
  g.build(chosen, 2, 5);
  ASSERT_EQ(g.groups.size(), 3U);
  EXPECT_EQ(g.groups[0].expert, 0U);
  EXPECT_EQ(g.groups[1].expert, 1U);
  EXPECT_EQ(g.groups[2].expert, 3U);
  EXPECT_EQ(g.groups[2].count, 4U);
  EXPECT_EQ(g.tokens, (std::vector<std::uint32_t>{0, 2, 1, 3, 0, 1, 2, 3}));
  for (std::uint32_t i = 0; i < chosen.size(); ++i) {
    EXPECT_EQ(g.tokens[g.entry_of[i]], i / 2);
    const auto& group =
        *std::find_if(g.groups.begin(), g.groups.end(), [&](const auto& x) { return x.expert == chosen[i]; });
    EXPECT_GE(g.entry_of[i], group.first);
    EXPECT_LT(g.entry_of[i], group.first + group.count);
  }
}

}  // namespace
}  // namespace troupe::cpu
