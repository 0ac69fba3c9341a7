#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "cpu/cpu_backend.hpp"
#include "model/files/read_guard.hpp"
#include "model/spec.hpp"
#include "model/tensor.hpp"

/// Where the backend reads weights from: an opened model, or a few matrices in a test's memory.
namespace troupe::cpu {

struct weight_source {
  model::model_spec spec;
  /// The weight in a role, with the shape that the spec implies; layer and expert where the role takes them. Any
  /// thread.
  std::function<model::matrix_view(model::tensor_role, std::uint32_t layer, std::uint32_t expert)> weight;
  std::shared_ptr<const void> owner;  ///< Keeps what the views point into.
  /// Called when a weight was packed and will not be read soon: its mapped pages may leave this process. May be empty.
  std::function<void(const model::matrix_view&)> release = {};

  /// After packing: an error when the file could not be read and what was packed is not the weight.
  result<void> done_with(const model::matrix_view& view) const {
    auto read = model::check_readable(view.bytes);
    if (read) read = model::check_readable(view.scale.bytes);
    if (release) release(view);
    return read;
  }
};

/// As `make_cpu_backend` for a model; the backend keeps the source.
result<std::unique_ptr<engine::backend>> make_cpu_backend(weight_source source, const cpu_options& options);

}  // namespace troupe::cpu
