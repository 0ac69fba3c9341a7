#pragma once

#include <memory>
#include <optional>

#include "base/result.hpp"
#include "engine/backend.hpp"

namespace troupe::model {
class opened_model;
}

namespace troupe::cpu {

/// Instruction sets with kernels of their own; each gives the same bits for the same input at a given precision.
enum class isa { scalar, avx2, avx512 };

struct cpu_options {
  engine::backend_options common;
  /// Nothing: the best that this machine has. The environment variable TROUPE_ISA (scalar, avx2, avx512) overrides.
  std::optional<isa> instructions;
};

/// The CPU backend. Base layers are packed into compute layout at once, experts on first use. fp32 precision is the
/// plain reference path.
result<std::unique_ptr<engine::backend>> make_cpu_backend(std::shared_ptr<const model::opened_model> model,
                                                          const cpu_options& options);

}  // namespace troupe::cpu
