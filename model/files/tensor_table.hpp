#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/tensor.hpp"

namespace troupe::model {

/// A tensor as a file describes it: shape in row-major order (GGUF's reversed dimensions are turned round by its
/// reader), bytes inside a mapped file.
struct stored_tensor {
  dtype type = dtype::f32;
  std::vector<std::uint64_t> shape;
  std::span<const std::byte> bytes;
  std::string type_name;  ///< As in the file; formats that Troupe cannot read are listed with `readable` false.
  bool readable = true;
  std::string file;  ///< For messages.
};

/// All tensors of a model by name, over all of its files.
using tensor_table = std::map<std::string, stored_tensor, std::less<>>;

/// "[4, 64, 32]"
std::string shape_text(std::span<const std::uint64_t> shape);

/// A byte range of a file and whose it is.
struct claimed_range {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::string_view owner;
};

/// The first pair of ranges that share a byte, or nothing. Sorts `ranges` by their beginning. Empty ranges share
/// nothing.
const claimed_range* find_overlap(std::vector<claimed_range>& ranges);

}  // namespace troupe::model
