#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/files/gguf.hpp"
#include "model/tensor.hpp"

/// Writers of model files. Tensors' bytes are given as stretches of memory written one after another, so that a tensor
/// of eight equal experts needs no eight copies in memory.
namespace troupe::model {

/// Told how many of all bytes are written; false gives the writing up.
using write_progress = std::function<bool(std::uint64_t done, std::uint64_t total)>;

struct tensor_to_write {
  std::string name;
  dtype type = dtype::f32;
  std::vector<std::uint64_t> shape;                   ///< Row-major.
  std::vector<std::span<const std::byte>> stretches;  ///< Valid until written.

  std::uint64_t size() const;
};

/// GGUF version 3.
class gguf_writer {
 public:
  void copy(const gguf_file::entry& entry);  ///< Metadata as another file has it.
  void set(std::string_view key, std::uint32_t value);
  void set(std::string_view key, std::string_view value);
  void add(tensor_to_write tensor) { tensors_.push_back(std::move(tensor)); }

  /// Appears whole or not at all.
  result<void> write(const std::filesystem::path& path, const write_progress& progress) const;

 private:
  std::string metadata_;
  std::uint64_t entries_ = 0;
  std::vector<tensor_to_write> tensors_;
};

/// One safetensors file of plain types.
result<void> write_safetensors(const std::filesystem::path& path, const std::vector<tensor_to_write>& tensors,
                               const write_progress& progress);

}  // namespace troupe::model
