#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "model/architectures/architecture.hpp"
#include "model/files/tensor_table.hpp"
#include "model/spec.hpp"
#include "model/tensor.hpp"

namespace troupe::model {

/// Finds the weights of a spec in a table of tensors by the names of an architecture, and knows the shape that each
/// must have. Reads the table, which must outlive it; immutable, any thread.
class weight_finder {
 public:
  /// `name_lists` are tried in order. `fp8_block`: rows and columns of one scale of block-quantised FP8, 0 when
  /// unknown.
  weight_finder(const model_spec& spec, const tensor_table& tensors,
                std::vector<std::span<const tensor_name>> name_lists, std::uint32_t fp8_block_rows,
                std::uint32_t fp8_block_cols)
      : spec_(&spec),
        tensors_(&tensors),
        name_lists_(std::move(name_lists)),
        fp8_block_rows_(fp8_block_rows),
        fp8_block_cols_(fp8_block_cols) {}

  /// The matrix in that role, with the shape that the spec implies. Not found: `not_found` with the first name tried;
  /// wrong shape or type: `corrupt` or `unsupported` with the tensor's name.
  result<matrix_view> find(tensor_role role, std::uint32_t layer, std::uint32_t expert) const;

  /// Looks up every weight that the spec asks for. All that are missing are listed in one error.
  result<void> check_all() const;

 private:
  struct found_tensor {
    std::string name;
    const stored_tensor* tensor;
    tensor_part part;
  };
  std::optional<found_tensor> look_up(tensor_role role, std::uint32_t layer, std::uint32_t expert,
                                      std::string& first_name) const;
  result<matrix_view> slice(const found_tensor& found, tensor_role role, std::uint32_t expert) const;
  result<void> attach_scale(const found_tensor& found, matrix_view& matrix) const;

  const model_spec* spec_;
  const tensor_table* tensors_;
  std::vector<std::span<const tensor_name>> name_lists_;
  std::uint32_t fp8_block_rows_;
  std::uint32_t fp8_block_cols_;
};

/// Ranges and divisibility that every backend relies on. `place`: the file that the spec was read from.
result<void> check_spec(const model_spec& spec, const std::string& place);

/// Groups of equal size, of which those that may be chosen from hold enough experts: `choose_experts` relies on it.
result<void> check_routing(const moe_spec& moe, const std::string& place);

/// True when no value of `matrix` is NaN or infinite. Reads it all.
bool all_finite(const matrix_view& matrix);

}  // namespace troupe::model
