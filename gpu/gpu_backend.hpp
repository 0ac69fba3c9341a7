#pragma once

#include <cstdint>
#include <memory>

#include "base/result.hpp"
#include "engine/backend.hpp"

namespace troupe::model {
class opened_model;
}

/// The CUDA backend's place. This version has none: the factory says so, and no other code asks what was built in.
namespace troupe::gpu {

struct gpu_options {
  engine::backend_options common;
  std::uint32_t device = 0;  ///< CUDA device ordinal.
};

/// An error of kind `unsupported` in a build without CUDA.
result<std::unique_ptr<engine::backend>> make_gpu_backend(std::shared_ptr<const model::opened_model> model,
                                                          const gpu_options& options);

}  // namespace troupe::gpu
