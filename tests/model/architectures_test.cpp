#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "model/architectures/architecture.hpp"
#include "model/model.hpp"
#include "model/weights.hpp"

/// What the descriptors read from the conformance suite's models; that it computes right is shown there.
namespace troupe::model {
namespace {

std::shared_ptr<const opened_model> open_golden(const std::string& name) {
  auto opened = opened_model::open(std::filesystem::path(TROUPE_TEST_DATA) / "models" / name);
  EXPECT_TRUE(opened) << (opened ? "" : opened.error().to_string());
  return opened ? *opened : nullptr;
}

TEST(Architectures, HaveOneDescriptorForEachName) {
  std::vector<std::string_view> names;
  for (const auto* family : architectures()) names.push_back(family->hf_name);
  EXPECT_EQ(names, (std::vector<std::string_view>{"LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM",
                                                  "Qwen3ForCausalLM", "MixtralForCausalLM", "OlmoeForCausalLM",
                                                  "Qwen2MoeForCausalLM", "Qwen3MoeForCausalLM", "GraniteMoeForCausalLM",
                                                  "Glm4MoeForCausalLM"}));
}

void expect_same_rope(const rope_spec& a, const rope_spec& b) {
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.theta, b.theta);
  EXPECT_EQ(a.rotary_dim, b.rotary_dim);
  EXPECT_EQ(a.factor, b.factor);
  EXPECT_EQ(a.original_context, b.original_context);
  EXPECT_EQ(a.low_freq_factor, b.low_freq_factor);
  EXPECT_EQ(a.high_freq_factor, b.high_freq_factor);
}

class BothSpellings : public testing::TestWithParam<const char*> {};

TEST_P(BothSpellings, OfConfigurationAndTensorsMeanTheSame) {
  const std::string name = GetParam();
  const auto newer = open_golden(name);
  const auto older = open_golden(name + "-v4");
  ASSERT_TRUE(newer && older);
  const auto &a = newer->spec(), &b = older->spec();
  EXPECT_EQ(a.architecture, b.architecture);
  expect_same_rope(a.rope, b.rope);
  EXPECT_EQ(a.moe.experts, b.moe.experts);
  EXPECT_EQ(a.moe.top_k, b.moe.top_k);
  EXPECT_EQ(a.moe.normalize_top_k, b.moe.normalize_top_k);
  ASSERT_EQ(a.layers.size(), b.layers.size());
  for (std::uint32_t l = 0; l < a.layers.size(); ++l) {
    ASSERT_EQ(a.layers[l].sparse, b.layers[l].sparse);
    using enum tensor_role;
    for (std::uint32_t e = 0; a.layers[l].sparse && e < a.moe.experts; ++e)
      for (const auto role : {expert_gate, expert_up, expert_down}) {
        const auto x = newer->weight(role, l, e), y = older->weight(role, l, e);
        EXPECT_EQ(x.rows, y.rows);
        EXPECT_TRUE(std::ranges::equal(x.bytes, y.bytes)) << x.name << " and " << y.name << ", expert " << e;
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, BothSpellings,
                         testing::Values("mixtral", "granitemoe", "qwen3moe", "llama-llama3", "glm4moe"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(Mixtral, RenormalisesItsGatesFromFolderAndGguf) {
  for (const auto* name : {"mixtral", "mixtral-q8_0.gguf"}) {
    const auto model = open_golden(name);
    ASSERT_TRUE(model);
    EXPECT_EQ(model->spec().architecture, "MixtralForCausalLM");
    EXPECT_TRUE(model->spec().moe.normalize_top_k);
    EXPECT_EQ(model->spec().rope.interleaved, std::string(name).ends_with(".gguf"));
  }
}

TEST(Olmoe, NormalisesWholeProjectionsAndClips) {
  const auto model = open_golden("olmoe-clip-v4");
  ASSERT_TRUE(model);
  EXPECT_EQ(model->spec().attention.qk_norm, qk_norm_kind::full);
  EXPECT_FLOAT_EQ(model->spec().attention.clip_qkv, 0.9F);
  EXPECT_TRUE(model->spec().attention.output_bias);
  EXPECT_EQ(model->weight(tensor_role::query_norm).cols, 48U);
  EXPECT_EQ(model->weight(tensor_role::key_norm).cols, 24U);
}

TEST(Qwen2Moe, HasASharedExpertBehindAGateFromFolderAndGguf) {
  for (const auto* name : {"qwen2moe", "qwen2moe-q5_1.gguf"}) {
    const auto model = open_golden(name);
    ASSERT_TRUE(model);
    EXPECT_TRUE(model->spec().attention.qkv_bias);
    EXPECT_FALSE(model->spec().moe.normalize_top_k);
    EXPECT_TRUE(model->spec().moe.shared_gate);
    EXPECT_EQ(model->weight(tensor_role::shared_up).rows, model->spec().moe.shared_ffn);
    EXPECT_FALSE(model->spec().rope.interleaved);
  }
}

TEST(Qwen3Moe, NormalisesHeadsAndMixesDenseLayersIn) {
  const auto model = open_golden("qwen3moe-mixed");
  ASSERT_TRUE(model);
  EXPECT_EQ(model->spec().attention.qk_norm, qk_norm_kind::per_head);
  EXPECT_EQ(model->weight(tensor_role::query_norm).cols, model->spec().attention.head_dim);
  const auto& layers = model->spec().layers;
  const auto sparse = std::ranges::count_if(layers, [](const auto& layer) { return layer.sparse; });
  EXPECT_GT(sparse, 0);
  EXPECT_LT(static_cast<std::size_t>(sparse), layers.size());
}

TEST(GraniteMoe, MultipliesFourTimes) {
  const auto model = open_golden("granitemoe");
  ASSERT_TRUE(model);
  EXPECT_FLOAT_EQ(model->spec().embedding_multiplier, 6.0F);
  EXPECT_FLOAT_EQ(model->spec().residual_multiplier, 0.4F);
  EXPECT_FLOAT_EQ(model->spec().logits_divisor, 4.0F);
  EXPECT_FLOAT_EQ(model->spec().attention.scale, 0.2F);
  EXPECT_TRUE(model->spec().tied_embeddings);
}

TEST(Glm4Moe, ChoosesByBiasAndGroupAndLeavesDraftLayersAlone) {
  for (const auto* name : {"glm4moe", "glm4moe-v4", "glm4moe-q8_0.gguf"}) {
    const auto model = open_golden(name);
    ASSERT_TRUE(model) << name;
    const auto& moe = model->spec().moe;
    EXPECT_EQ(moe.scoring, router_scoring::sigmoid);
    EXPECT_EQ(moe.group_score, group_scoring::two_best);
    EXPECT_TRUE(moe.selection_bias);
    EXPECT_GT(moe.groups, moe.top_groups);
    EXPECT_FLOAT_EQ(moe.routed_scale, 1.8F);
    EXPECT_FALSE(moe.shared_gate);
    EXPECT_FALSE(model->spec().layers.front().sparse);
    EXPECT_TRUE(model->spec().layers.back().sparse);
    EXPECT_TRUE(model->spec().attention.qkv_bias);
    EXPECT_FALSE(model->spec().attention.output_bias);
    EXPECT_EQ(model->spec().rope.rotary_dim, model->spec().attention.head_dim / 2);
  }
}

/// The spec that a family reads from a config.json of these keys, or the error.
result<model_spec> read_config(std::string_view hf_name, boost::json::object keys) {
  boost::json::object config{{"vocab_size", 100},
                             {"hidden_size", 64},
                             {"num_hidden_layers", 4},
                             {"intermediate_size", 32},
                             {"num_attention_heads", 8}};
  for (auto& [key, value] : keys) config[key] = std::move(value);
  std::optional<error> failure;
  const config_reader reader(config, "config.json", failure);
  model_spec spec;
  for (const auto* family : architectures()) {
    if (family->hf_name != hf_name) continue;
    read_common_config(reader, family->hf_defaults, spec);
    family->read_config(reader, spec);
  }
  if (failure) return *failure;
  return spec;
}

TEST(Config, TakesWhatIsLeftOutFromTheFamily) {
  const auto mixtral_spec = read_config("MixtralForCausalLM", {});
  ASSERT_TRUE(mixtral_spec);
  EXPECT_FLOAT_EQ(mixtral_spec->norm_epsilon, 1e-5F);
  EXPECT_EQ(mixtral_spec->rope.theta, 1e6);
  EXPECT_EQ(mixtral_spec->attention.kv_heads, 8U);
  EXPECT_EQ(mixtral_spec->layers[0].sliding_window, 0U);
  const auto mistral_spec = read_config("MistralForCausalLM", {});
  ASSERT_TRUE(mistral_spec);
  EXPECT_EQ(mistral_spec->layers[3].sliding_window, 4096U);
  const auto unwindowed = read_config("MistralForCausalLM", {{"sliding_window", nullptr}});
  ASSERT_TRUE(unwindowed);
  EXPECT_EQ(unwindowed->layers[3].sliding_window, 0U);
}

TEST(Config, GivesQwenItsWindowsByLayer) {
  const auto by_index =
      read_config("Qwen2ForCausalLM", {{"use_sliding_window", true}, {"sliding_window", 16}, {"max_window_layers", 3}});
  ASSERT_TRUE(by_index);
  EXPECT_EQ(by_index->layers[2].sliding_window, 0U);
  EXPECT_EQ(by_index->layers[3].sliding_window, 16U);
  const auto by_type =
      read_config("Qwen3ForCausalLM",
                  {{"use_sliding_window", true},
                   {"sliding_window", 16},
                   {"layer_types", {"sliding_attention", "full_attention", "full_attention", "sliding_attention"}}});
  ASSERT_TRUE(by_type);
  EXPECT_EQ(by_type->layers[0].sliding_window, 16U);
  EXPECT_EQ(by_type->layers[1].sliding_window, 0U);
  EXPECT_EQ(by_type->attention.head_dim, 128U);
}

TEST(Config, ReadsRopeParametersThatAreNestedByLayerType) {
  const boost::json::object rope{{"rope_type", "linear"}, {"factor", 2.0}, {"rope_theta", 5000.0}};
  const auto nested =
      read_config("LlamaForCausalLM", {{"rope_parameters", {{"full_attention", rope}, {"sliding_attention", rope}}}});
  ASSERT_TRUE(nested);
  EXPECT_EQ(nested->rope.kind, rope_kind::linear);
  EXPECT_EQ(nested->rope.theta, 5000.0);
  EXPECT_EQ(nested->rope.factor, 2.0);
}

/// The message with which a configuration of routed experts is refused; empty where it is not.
std::string refusal(std::string_view hf_name, boost::json::object keys) {
  const boost::json::object usual{
      {"n_routed_experts", 8}, {"num_experts_per_tok", 2},   {"moe_intermediate_size", 16}, {"n_group", 4},
      {"topk_group", 2},       {"first_k_dense_replace", 1}, {"num_key_value_heads", 8}};
  boost::json::object config = usual;
  for (auto& [key, value] : keys) config[key] = std::move(value);
  const auto spec = read_config(hf_name, std::move(config));
  if (!spec) return spec.error().to_string();
  const auto sound = check_spec(*spec, "config.json");
  return sound ? "" : sound.error().to_string();
}

TEST(Config, RefusesGroupsOfExpertsThatCannotBe) {
  using testing::HasSubstr;
  const auto refused = [](boost::json::object keys) { return refusal("Glm4MoeForCausalLM", std::move(keys)); };
  EXPECT_EQ(refused({}), "");
  EXPECT_THAT(refused({{"n_group", 3}}), HasSubstr("n_group"));
  EXPECT_THAT(refused({{"n_group", 0}}), HasSubstr("n_group"));
  EXPECT_THAT(refused({{"n_group", 8}}), HasSubstr("n_group"));
  EXPECT_THAT(refused({{"topk_group", 5}}), HasSubstr("topk_group"));
  EXPECT_THAT(refused({{"topk_group", 0}}), HasSubstr("topk_group"));
  EXPECT_THAT(refused({{"num_experts_per_tok", 5}}), HasSubstr("topk_group"));
  EXPECT_THAT(refused({{"num_experts_per_tok", 9}}), HasSubstr("num_experts_per_tok"));
  EXPECT_THAT(refused({{"routed_scaling_factor", 0}}), HasSubstr("routed_scaling_factor"));
  EXPECT_THAT(refused({{"routed_scaling_factor", 1e300}}), HasSubstr("routed_scaling_factor"));
  EXPECT_THAT(refused({{"n_shared_experts", 1 << 30}}), HasSubstr("n_shared_experts"));
  EXPECT_THAT(refused({{"moe_layer_freq", 2}}), HasSubstr("moe_layer_freq"));
  EXPECT_THAT(refused({{"n_group", "four"}}), HasSubstr("n_group"));
}

TEST(Config, RefusesScalingsThatCannotBeComputed) {
  const auto refused = [](boost::json::object rope) {
    auto spec = read_config("LlamaForCausalLM", {{"rope_scaling", std::move(rope)}});
    if (!spec) return true;
    spec->ffn = 32;
    return !check_spec(*spec, "config.json");
  };
  EXPECT_TRUE(refused({{"type", "llama3"}, {"factor", 8}, {"low_freq_factor", 4}, {"high_freq_factor", 4}}));
  EXPECT_TRUE(refused({{"type", "yarn"}, {"factor", 4}, {"beta_slow", 0}}));
  EXPECT_TRUE(refused({{"type", "yarn"}, {"factor", 4}, {"rope_theta", 1}}));
  EXPECT_TRUE(refused({{"type", "linear"}, {"factor", -1}}));
  EXPECT_TRUE(refused({{"type", "linear"}}));
  EXPECT_FALSE(refused({{"type", "linear"}, {"factor", 2}}));
}

}  // namespace
}  // namespace troupe::model
