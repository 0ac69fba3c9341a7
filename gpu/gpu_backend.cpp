#include "gpu/gpu_backend.hpp"

namespace troupe::gpu {

result<std::unique_ptr<engine::backend>> make_gpu_backend(std::shared_ptr<const model::opened_model>,
                                                          const gpu_options&) {
  return error{error_kind::unsupported, "this build has no CUDA backend; use the CPU", "device"};
}

}  // namespace troupe::gpu
