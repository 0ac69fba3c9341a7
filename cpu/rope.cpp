#include "cpu/rope.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace troupe::cpu {
namespace {

using model::rope_kind;
using model::rope_spec;

/// base^(2i / dim) in fp32, where the exponent is rounded first.
float frequency(double base, std::uint32_t pair, std::uint32_t dim) {
  const float exponent = static_cast<float>(2 * pair) / static_cast<float>(dim);
  return static_cast<float>(std::pow(static_cast<double>(static_cast<float>(base)), static_cast<double>(exponent)));
}

std::vector<float> plain_inverse(double base, std::uint32_t dim) {
  std::vector<float> inverse(dim / 2);
  for (std::uint32_t i = 0; i < inverse.size(); ++i) inverse[i] = 1.0F / frequency(base, i, dim);
  return inverse;
}

/// Llama 3.1: long wavelengths are divided by the factor, short ones kept, those between interpolated.
void scale_llama3(const rope_spec& spec, std::uint32_t context, std::vector<float>& inverse) {
  const float factor = static_cast<float>(spec.factor);
  const float old_context = static_cast<float>(context);
  const double low_wavelength = context / spec.low_freq_factor;
  const double high_wavelength = context / spec.high_freq_factor;
  for (float& f : inverse) {
    const float wavelength = static_cast<float>(2.0 * std::numbers::pi) / f;
    if (wavelength > low_wavelength) {
      f /= factor;
    } else if (wavelength >= high_wavelength) {
      const float smooth = (old_context / wavelength - static_cast<float>(spec.low_freq_factor)) /
                           static_cast<float>(spec.high_freq_factor - spec.low_freq_factor);
      f = (1.0F - smooth) * f / factor + smooth * f;
    }
  }
}

/// The dimension whose wavelength makes `rotations` turns over the original context (YaRN, 2023, section 3.2).
double correction_dimension(const rope_spec& spec, std::uint32_t context, double rotations) {
  return spec.rotary_dim * std::log(context / (rotations * 2.0 * std::numbers::pi)) / (2.0 * std::log(spec.theta));
}

void scale_yarn(const rope_spec& spec, std::uint32_t context, std::vector<float>& inverse) {
  double low = correction_dimension(spec, context, spec.beta_fast);
  double high = correction_dimension(spec, context, spec.beta_slow);
  if (spec.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(spec.rotary_dim) - 1.0);
  if (low == high) high += 0.001;
  const float factor = static_cast<float>(spec.factor);
  for (std::uint32_t i = 0; i < inverse.size(); ++i) {
    const float ramp =
        std::clamp((static_cast<float>(i) - static_cast<float>(low)) / static_cast<float>(high - low), 0.0F, 1.0F);
    const float keep = 1.0F - ramp;
    const float wavelength = frequency(spec.theta, i, spec.rotary_dim);
    inverse[i] = 1.0F / (factor * wavelength) * (1.0F - keep) + 1.0F / wavelength * keep;
  }
}

double yarn_scale(double factor, double mscale) { return factor <= 1.0 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0; }

double yarn_attention_factor(const rope_spec& spec) {
  if (spec.attention_factor != 0.0) return spec.attention_factor;
  if (spec.mscale != 0.0 && spec.mscale_all_dim != 0.0) {
    return yarn_scale(spec.factor, spec.mscale) / yarn_scale(spec.factor, spec.mscale_all_dim);
  }
  return yarn_scale(spec.factor, 1.0);
}

}  // namespace

rope_table::rope_table(const rope_spec& spec, std::uint32_t max_context)
    : spec_(spec), context_(spec.original_context ? spec.original_context : max_context) {
  inverse_ = plain_inverse(spec.theta, spec.rotary_dim);
  switch (spec.kind) {
    case rope_kind::none:
    case rope_kind::dynamic:
      break;
    case rope_kind::linear:
      for (float& f : inverse_) f /= static_cast<float>(spec.factor);
      break;
    case rope_kind::llama3:
      scale_llama3(spec, context_, inverse_);
      break;
    case rope_kind::yarn:
      scale_yarn(spec, context_, inverse_);
      factor_ = static_cast<float>(yarn_attention_factor(spec));
      break;
  }
  for (std::size_t i = 0; i < std::min(inverse_.size(), spec.frequency_factors.size()); ++i) {
    inverse_[i] /= spec.frequency_factors[i];
  }
}

double rope_table::dynamic_theta(std::uint32_t length) const {
  const double dim = spec_.rotary_dim;
  const double stretch = spec_.factor * length / context_ - (spec_.factor - 1.0);
  return spec_.theta * std::pow(stretch, dim / (dim - 2.0));
}

void rope_table::angles(std::uint32_t position, std::uint32_t prompt_tokens, std::span<float> out) const {
  const std::uint32_t length = std::max(prompt_tokens, position + 1);
  const bool stretched = spec_.kind == rope_kind::dynamic && length > context_;
  const double theta = stretched ? dynamic_theta(length) : 0.0;
  for (std::uint32_t i = 0; i < inverse_.size(); ++i) {
    const float inverse = stretched ? 1.0F / frequency(theta, i, spec_.rotary_dim) : inverse_[i];
    const double angle = static_cast<double>(static_cast<float>(position) * inverse);
    out[i] = static_cast<float>(std::cos(angle)) * factor_;
    out[inverse_.size() + i] = static_cast<float>(std::sin(angle)) * factor_;
  }
}

void rope_table::rotate(std::span<const float> angles, float* head) const {
  const std::uint32_t count = pairs();
  const std::uint32_t step = spec_.interleaved ? 2 : 1;
  const std::uint32_t partner = spec_.interleaved ? 1 : count;
  for (std::uint32_t i = 0; i < count; ++i) {
    float& x = head[i * step];
    float& y = head[i * step + partner];
    const float cosine = angles[i];
    const float sine = angles[count + i];
    const float turned = x * cosine - y * sine;
    y = y * cosine + x * sine;
    x = turned;
  }
}

}  // namespace troupe::cpu
