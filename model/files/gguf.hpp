#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "model/files/mapped_file.hpp"
#include "model/files/tensor_table.hpp"

namespace troupe::model {

/// The value types of GGUF metadata, with the numbers that the specification gives them.
enum class gguf_type : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };

/// A metadata array, left in the file: strings and numbers are read on demand.
struct gguf_array {
  gguf_type type = gguf_type::u8;
  std::uint64_t count = 0;
  std::span<const std::byte> bytes;  ///< Elements one after another; strings with their 64-bit lengths.
};

/// A metadata value. Strings are views into the file.
using gguf_value = std::variant<std::uint64_t, std::int64_t, double, bool, std::string_view, gguf_array>;

/// A GGUF file of version 2 or 3, little-endian (ggml's gguf.md): metadata and tensors, as views into the mapped file.
/// Every length and count was checked against the bytes that remain, so that nothing is allocated on a file's word.
/// Accessors return nothing for an absent key and an error that names the key for one of another type.
class gguf_file {
 public:
  static result<gguf_file> read(const mapped_file& file);

  std::optional<std::string_view> text(std::string_view key) const;
  const gguf_value* find(std::string_view key) const;

  result<std::optional<std::uint64_t>> unsigned_value(std::string_view key) const;
  result<std::optional<double>> number(std::string_view key) const;
  result<std::optional<bool>> boolean(std::string_view key) const;
  result<std::optional<std::vector<std::string_view>>> strings(std::string_view key) const;
  /// At most `limit` numbers: they take more room in memory than in the file.
  result<std::optional<std::vector<double>>> numbers(std::string_view key, std::uint64_t limit) const;

  /// Keys in the order of the file, for copying.
  struct entry {
    std::string key;
    gguf_value value;
    std::span<const std::byte> raw;  ///< Key, type and value as they lie in the file.
  };
  const std::vector<entry>& entries() const { return entries_; }
  const std::vector<std::string>& tensor_order() const { return tensor_order_; }
  const tensor_table& tensors() const { return tensors_; }
  std::uint32_t version() const { return version_; }
  std::span<const std::byte> header() const { return header_; }  ///< Everything before the tensors' data.
  const std::string& name() const { return name_; }

  error wrong_type(std::string_view key, std::string_view wanted) const;

 private:
  friend class gguf_reader;
  std::string name_;
  std::uint32_t version_ = 0;
  std::vector<entry> entries_;
  std::map<std::string, std::size_t, std::less<>> index_;
  std::vector<std::string> tensor_order_;
  tensor_table tensors_;
  std::span<const std::byte> header_;
};

/// ggml's number of a type, for the writer; nothing for types that GGUF does not have.
std::optional<std::uint32_t> ggml_type_number(dtype type);

}  // namespace troupe::model
