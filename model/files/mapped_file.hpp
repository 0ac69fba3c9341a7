#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "base/result.hpp"
#include "model/files/read_guard.hpp"

namespace troupe::model {

/// A file mapped read-only: its bytes live in the page cache and are read when touched, never copied whole. Movable;
/// the bytes stay where they are until destruction. Any thread may read. Where the file can no longer be read, as after
/// truncation, the bytes read as zeros and `check_readable` tells.
class mapped_file {
 public:
  static result<mapped_file> open(const std::filesystem::path& path);

  mapped_file(mapped_file&& other) noexcept;
  mapped_file& operator=(mapped_file&& other) noexcept;
  ~mapped_file();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& name() const { return name_; }  ///< The path as given: the place of errors.

 private:
  mapped_file(const std::byte* data, std::size_t size, std::string name)
      : data_(data), size_(size), name_(std::move(name)), guard_(bytes()) {}

  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::string name_;
  read_guard guard_;
};

/// A whole small text file (a config, a tokenizer), refused above `limit` bytes.
result<std::string> read_text(const std::filesystem::path& path, std::size_t limit = 256 << 20);

}  // namespace troupe::model
