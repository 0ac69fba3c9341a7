#pragma once

#include <filesystem>

#include "base/result.hpp"
#include "model/files/mapped_file.hpp"
#include "model/files/tensor_table.hpp"

namespace troupe::model {

/// Adds the tensors of one safetensors file to `table`, as views into `file`, which must outlive them.
///
/// Checks all that the format's description asks for (safetensors README, "Format"): header of at most 100 MB of strict
/// JSON, unique names, offsets inside the file, no overlap, no hole, nothing after the last tensor, and bytes that
/// match type and shape. Tensors of a type that Troupe cannot compute with are listed as not readable. Errors name the
/// file, the tensor and the rule. `table` is left unchanged on error.
result<void> read_safetensors(const mapped_file& file, tensor_table& table);

}  // namespace troupe::model
