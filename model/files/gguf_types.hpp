#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "model/files/gguf.hpp"

namespace troupe::model {

/// A tensor type of ggml, also one that Troupe only passes over.
struct ggml_type {
  std::uint32_t number;
  std::string_view name;
  std::uint32_t block_size;  ///< Values of one block; rows are whole blocks.
  std::uint32_t block_bytes;
};

/// Null for numbers that ggml does not define.
const ggml_type* find_ggml_type(std::uint32_t number);

/// Bytes of one metadata value of this type; 0 for strings and arrays, whose size the file says.
std::uint64_t fixed_size(gguf_type type);

/// A little-endian number at any address.
template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// A value of a type that has a fixed size; the caller has checked that its bytes are there.
gguf_value load_scalar(gguf_type type, const std::byte* from);

}  // namespace troupe::model
