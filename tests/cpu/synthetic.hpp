#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "cpu/weight_source.hpp"

/// Small seeded matrices and models in memory, so that the backend's tests need no files.
namespace troupe::cpu::test {

inline std::vector<float> random_values(std::size_t count, std::uint32_t seed, float deviation = 1.0F) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(0.0F, deviation);
  std::vector<float> values(count);
  for (float& v : values) v = normal(engine);
  return values;
}

/// A matrix in fp32 that owns its values.
struct matrix {
  std::uint32_t rows = 0, cols = 0;
  std::vector<float> values;
  std::string name;

  model::matrix_view view() const {
    return {.type = model::dtype::f32,
            .rows = rows,
            .cols = cols,
            .bytes = std::as_bytes(std::span(values)),
            .scale = {},
            .name = name};
  }
};

inline matrix random_matrix(std::uint32_t rows, std::uint32_t cols, std::uint32_t seed, float deviation = 1.0F) {
  return {rows, cols, random_values(std::size_t{rows} * cols, seed, deviation), "synthetic"};
}

/// A model of random weights.
struct synthetic_model {
  using key = std::tuple<model::tensor_role, std::uint32_t, std::uint32_t>;
  model::model_spec spec;
  std::map<key, matrix> weights;
};

/// Every weight that `spec` asks for, seeded. Change weights before `source` is called.
std::shared_ptr<synthetic_model> make_model(const model::model_spec& spec, std::uint32_t seed);

weight_source source(std::shared_ptr<const synthetic_model> model);

/// A small sparse model with grouped queries, an odd number of heads per group, sizes that fill no panel, a shared
/// expert and a dense layer.
model::model_spec small_sparse_spec();

}  // namespace troupe::cpu::test
