#include <array>

#include "model/architectures/architecture.hpp"

namespace troupe::model {

std::span<const architecture* const> architectures() {
  static constexpr std::array all{&llama, &mistral,   &qwen2,     &qwen3,       &mixtral,
                                  &olmoe, &qwen2_moe, &qwen3_moe, &granite_moe, &glm4_moe};
  return all;
}

}  // namespace troupe::model
