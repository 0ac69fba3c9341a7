// Distributions against those that transformers' logits processors leave (tools/make_golden_sampling.py).
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>

#include "model/sampling/filters.hpp"
#include "model/sampling/sampler.hpp"

namespace troupe::model {
namespace {

namespace json = boost::json;
using distribution = std::map<token_id, double>;

struct golden_case {
  std::string name;
  bool draws;  ///< Has few enough tokens that draws show its distribution.
  sampling_params params;
  std::vector<float> logits;
  std::vector<token_id> prompt, answer;
  distribution expected;
};

golden_case read_case(const json::object& o) {
  const json::object& p = o.at("params").as_object();
  const auto number = [&](const char* name) { return p.at(name).to_number<double>(); };
  golden_case out{std::string(o.at("name").as_string()), o.at("draws").as_bool(), {}, {}, {}, {}, {}};
  out.params.temperature = number("temperature");
  out.params.top_k = static_cast<int>(number("top_k"));
  out.params.top_p = number("top_p");
  out.params.min_p = number("min_p");
  out.params.typical_p = number("typical_p");
  out.params.repetition_penalty = number("repetition");
  out.params.presence_penalty = number("presence");
  out.params.frequency_penalty = number("frequency");
  for (const auto& l : o.at("logits").as_array()) out.logits.push_back(l.to_number<float>());
  for (const auto& id : o.at("prompt").as_array()) out.prompt.push_back(id.to_number<token_id>());
  for (const auto& id : o.at("answer").as_array()) out.answer.push_back(id.to_number<token_id>());
  for (const auto& [id, probability] : o.at("probabilities").as_object())
    out.expected[std::stoi(std::string(id))] = probability.to_number<double>();
  return out;
}

const std::vector<golden_case>& cases() {
  static const std::vector<golden_case> all = [] {
    std::ifstream file(TROUPE_TEST_DATA "/sampling/distributions.json");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    std::vector<golden_case> out;
    const json::value parsed = json::parse(text);
    for (const auto& one : parsed.as_array()) out.push_back(read_case(one.as_object()));
    return out;
  }();
  return all;
}

/// The sampler's filters one after the other, over the whole sorted vocabulary.
distribution filtered(const golden_case& one) {
  const auto& p = one.params;
  std::vector<candidate> all;
  for (std::size_t i = 0; i < one.logits.size(); ++i)
    all.push_back({static_cast<token_id>(i), static_cast<float>(one.logits[i] / p.temperature), 0.0});
  keep_top_k(all, p.top_k > 0 ? static_cast<std::size_t>(p.top_k) : all.size());
  normalize(all);
  if (p.typical_p < 1.0) keep_typical(all, p.typical_p);
  normalize(all);
  if (p.top_p < 1.0) keep_top_p(all, p.top_p);
  normalize(all);
  if (p.min_p > 0.0) keep_min_p(all, p.min_p);
  normalize(all);
  distribution out;
  for (const auto& c : all) out[c.id] = c.probability;
  return out;
}

TEST(SamplingGolden, FiltersLeaveWhatTheReferenceLeaves) {
  ASSERT_GE(cases().size(), 25U);
  for (const auto& one : cases()) {
    const auto& p = one.params;
    if (p.repetition_penalty != 1.0 || p.presence_penalty != 0.0 || p.frequency_penalty != 0.0) continue;
    const distribution got = filtered(one);
    // A token that the reference's 32-bit softmax rounds away altogether is none that it keeps.
    for (const auto& [id, probability] : got) {
      if (!one.expected.contains(id)) {
        EXPECT_LT(probability, 1e-40) << one.name << ": token " << id << " is kept";
      }
    }
    for (const auto& [id, probability] : one.expected) {
      const auto it = got.find(id);
      ASSERT_NE(it, got.end()) << one.name << ": token " << id << " is dropped";
      EXPECT_NEAR(it->second, probability, 1e-6 + 1e-4 * probability) << one.name << ": token " << id;
    }
  }
}

class SamplingGoldenDraws : public ::testing::TestWithParam<std::size_t> {};

// Pearson's test at the 0.1 % level; seeds are fixed, so the verdict is too.
TEST_P(SamplingGoldenDraws, FollowTheReferencesDistribution) {
  const golden_case& one = cases().at(GetParam());
  if (!one.draws) return;
  constexpr int draws = 100'000;
  std::map<token_id, int> counts;
  for (int i = 0; i < draws; ++i) {
    sampling_params params = one.params;
    params.seed = static_cast<std::uint64_t>(i);
    sampler s(std::move(params), one.prompt, {}, one.logits.size());
    for (const token_id id : one.answer) s.accept(id);
    ++counts[s.sample(one.logits).id];
  }
  for (const auto& [id, count] : counts)
    ASSERT_TRUE(one.expected.contains(id)) << one.name << ": token " << id << " must not be drawn";
  double statistic = 0.0, rest_expected = 0.0, rest_seen = 0.0;
  int classes = 0;
  for (const auto& [id, probability] : one.expected) {
    const double expected = probability * draws;
    const double seen = counts.contains(id) ? counts[id] : 0;
    if (expected < 5.0) {
      rest_expected += expected;
      rest_seen += seen;
      continue;
    }
    statistic += (seen - expected) * (seen - expected) / expected;
    ++classes;
  }
  if (rest_expected > 0.0) {
    statistic += (rest_seen - rest_expected) * (rest_seen - rest_expected) / rest_expected;
    ++classes;
  }
  const double freedom = classes - 1;
  if (freedom == 0) return;
  // Wilson and Hilferty's approximation of the 99.9 % quantile.
  const double z = 3.09;
  const double quantile = freedom * std::pow(1 - 2 / (9 * freedom) + z * std::sqrt(2 / (9 * freedom)), 3);
  EXPECT_LT(statistic, quantile) << one.name << ", " << freedom << " degrees of freedom";
}

INSTANTIATE_TEST_SUITE_P(Small, SamplingGoldenDraws, ::testing::Range<std::size_t>(0, 13));

TEST(SamplingGolden, DrawsOnlyWhatTheReferenceKeepsOfALargeVocabulary) {
  for (const auto& one : cases()) {
    if (one.draws) continue;
    sampling_params params = one.params;
    for (std::uint64_t seed = 0; seed < 2000; ++seed) {
      params.seed = seed;
      const token_id id = sampler(params, one.prompt, {}, one.logits.size()).sample(one.logits).id;
      ASSERT_TRUE(one.expected.contains(id)) << one.name << ": token " << id << " must not be drawn";
    }
  }
}

}  // namespace
}  // namespace troupe::model
