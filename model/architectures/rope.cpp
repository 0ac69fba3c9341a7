#include <cmath>

#include "model/architectures/architecture.hpp"

/// Readers of RoPE settings; the formulas they parametrise are in the backends.
namespace troupe::model {
namespace {

void read_scaling(const config_reader& scaling, const std::string& type, model_spec& spec) {
  auto& rope = spec.rope;
  if (type == "default") return;
  rope.factor = scaling.number({"factor"}, type == "yarn" ? std::optional(0.0) : std::nullopt);
  if (type == "linear") {
    rope.kind = rope_kind::linear;
  } else if (type == "dynamic") {
    rope.kind = rope_kind::dynamic;
    rope.original_context = spec.max_context;
  } else if (type == "llama3") {
    rope.kind = rope_kind::llama3;
    rope.low_freq_factor = scaling.number({"low_freq_factor"});
    rope.high_freq_factor = scaling.number({"high_freq_factor"});
    rope.original_context = scaling.size({"original_max_position_embeddings"}, spec.max_context);
  } else if (type == "yarn") {
    rope.kind = rope_kind::yarn;
    rope.original_context = scaling.size({"original_max_position_embeddings"}, spec.max_context);
    if (rope.factor == 0.0 && rope.original_context != 0)
      rope.factor = static_cast<double>(spec.max_context) / rope.original_context;
    rope.beta_fast = scaling.number({"beta_fast"}, 32.0);
    rope.beta_slow = scaling.number({"beta_slow"}, 1.0);
    rope.attention_factor = scaling.number({"attention_factor"}, 0.0);
    rope.mscale = scaling.number({"mscale"}, 0.0);
    rope.mscale_all_dim = scaling.number({"mscale_all_dim"}, 0.0);
    rope.truncate = scaling.flag({"truncate"}, true);
  } else {
    scaling.fail(error_kind::unsupported, "rope_type",
                 "'" + type + "' is not supported; default, linear, dynamic, llama3 and yarn are");
  }
  if (!(rope.factor > 0.0) || !std::isfinite(rope.factor))
    scaling.fail(error_kind::corrupt, "factor", "must be above 0");
}

}  // namespace

void read_rope_config(const config_reader& config, const config_defaults& defaults, model_spec& spec) {
  auto& rope = spec.rope;
  rope.theta = config.number({"rope_theta"}, defaults.rope_theta);
  double partial = config.number({"partial_rotary_factor"}, defaults.partial_rotary);
  auto scaling = config.object("rope_parameters");
  if (!scaling) scaling = config.object("rope_scaling");
  if (scaling) {
    if (const auto per_layer_type = scaling->object("full_attention")) {
      const auto sliding = scaling->object("sliding_attention");
      if (sliding && sliding->json() != per_layer_type->json())
        config.fail(error_kind::unsupported, "rope_parameters", "differ between sliding and full attention layers");
      scaling = per_layer_type;
    }
    rope.theta = scaling->number({"rope_theta"}, rope.theta);
    partial = scaling->number({"partial_rotary_factor"}, partial);
    read_scaling(*scaling, scaling->text({"rope_type", "type"}, "default"), spec);
  }
  if (!(partial > 0.0 && partial <= 1.0)) {
    config.fail(error_kind::corrupt, "partial_rotary_factor", "must be above 0 and at most 1");
    partial = 1.0;
  }
  rope.rotary_dim = static_cast<std::uint32_t>(spec.attention.head_dim * partial);
  if (!(rope.theta > 0.0) || !std::isfinite(rope.theta))
    config.fail(error_kind::corrupt, "rope_theta", "must be above 0");
}

void read_rope_gguf(const gguf_settings& settings, model_spec& spec) {
  auto& rope = spec.rope;
  rope.theta = settings.number("rope.freq_base", 10000.0);
  rope.rotary_dim = settings.size("rope.dimension_count", spec.attention.head_dim);
  // As in ggml: a factor alone, in older files under another key, means linear scaling.
  const std::string type = settings.text("rope.scaling.type", "linear");
  if (type == "linear" || type == "yarn") {
    rope.factor = settings.number("rope.scaling.factor", settings.number("rope.scale_linear", 1.0));
    if (!(rope.factor > 0.0)) settings.fail(error_kind::corrupt, "rope.scaling.factor", "must be above 0");
  }
  if (type == "linear") {
    rope.kind = rope.factor == 1.0 ? rope_kind::none : rope_kind::linear;
  } else if (type == "yarn") {
    rope.kind = rope_kind::yarn;
    rope.original_context = settings.size("rope.scaling.original_context_length", spec.max_context);
    rope.beta_fast = settings.number("rope.scaling.yarn_beta_fast", 32.0);
    rope.beta_slow = settings.number("rope.scaling.yarn_beta_slow", 1.0);
    // ggml multiplies its own magnitude term by this key.
    const double scale =
        settings.number("rope.scaling.attn_factor", settings.number("rope.scaling.yarn_attn_factor", 1.0));
    rope.attention_factor = scale * (rope.factor > 1.0 ? 1.0 + 0.1 * std::log(rope.factor) : 1.0);
  } else if (type != "none") {
    settings.fail(error_kind::unsupported, "rope.scaling.type",
                  "'" + type + "' is not supported; none, linear and yarn are");
  }
  if (!(rope.theta > 0.0) || !std::isfinite(rope.theta))
    settings.fail(error_kind::corrupt, "rope.freq_base", "must be above 0");

  const auto factors = settings.file().tensors().find("rope_freqs.weight");
  if (factors == settings.file().tensors().end()) return;
  if (!factors->second.readable || factors->second.type != dtype::f32 || factors->second.shape.size() != 1 ||
      factors->second.shape[0] != rope.rotary_dim / 2)
    return settings.fail(error_kind::corrupt, "rope.dimension_count", "does not fit tensor 'rope_freqs.weight'");
  rope.frequency_factors.resize(factors->second.shape[0]);
  dequantize(dtype::f32, factors->second.bytes, rope.frequency_factors);
}

}  // namespace troupe::model
