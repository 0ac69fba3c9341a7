#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string_view>

#include "base/result.hpp"

namespace troupe::model {

/// A file that appears under its name only when it is whole: it is written beside its place and renamed. Destroyed
/// before `commit`, it leaves nothing behind.
class new_file {
 public:
  /// Refuses when the disk has less than `needed` bytes left, and to take the place of anything but a plain file.
  static result<new_file> create(const std::filesystem::path& path, std::uint64_t needed);

  new_file(new_file&&) noexcept = default;
  new_file& operator=(new_file&&) = delete;
  ~new_file();

  /// Write errors are kept and reported by `commit`.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  void pad_to(std::uint64_t alignment);
  std::uint64_t size() const { return size_; }

  result<void> commit();

 private:
  explicit new_file(std::filesystem::path path);

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  std::ofstream out_;
  std::uint64_t size_ = 0;
};

}  // namespace troupe::model
