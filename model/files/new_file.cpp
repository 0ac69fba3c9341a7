#include "model/files/new_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <system_error>

namespace troupe::model {

namespace {

/// Waits until the bytes are on the disk: a power cut after the rename must not leave an empty file.
bool on_disk(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool synced = ::fsync(file) == 0;
  return ::close(file) == 0 && synced;
}

}  // namespace

new_file::new_file(std::filesystem::path path)
    : path_(std::move(path)), temporary_(path_.string() + "." + std::to_string(::getpid()) + ".part") {}

result<new_file> new_file::create(const std::filesystem::path& path, std::uint64_t needed) {
  std::error_code failure;
  const auto there = std::filesystem::status(path, failure);
  if (std::filesystem::exists(there) && !std::filesystem::is_regular_file(there))
    return error{error_kind::invalid, "is no plain file; choose another name", path.string()};
  failure.clear();
  const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  const auto space = std::filesystem::space(folder, failure);
  if (failure) return error{error_kind::io, "cannot write there: " + failure.message(), folder.string()};
  constexpr std::uint64_t mebi = 1 << 20;
  if (space.available < needed)
    return error{error_kind::io,
                 "the disk has " + std::to_string(space.available / mebi) + " MiB left, " +
                     std::to_string(needed / mebi + 1) + " MiB are needed; free some or choose another place",
                 folder.string()};
  new_file file(path);
  file.out_.open(file.temporary_, std::ios::binary | std::ios::trunc);
  if (!file.out_)
    return error{error_kind::io, "cannot create this file; check the folder's permissions", file.temporary_.string()};
  return file;
}

new_file::~new_file() {
  if (temporary_.empty()) return;
  out_.close();
  std::error_code ignored;
  std::filesystem::remove(temporary_, ignored);
}

void new_file::write(std::span<const std::byte> bytes) {
  out_.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  size_ += bytes.size();
}

void new_file::write(std::string_view text) { write(std::as_bytes(std::span(text))); }

void new_file::pad_to(std::uint64_t alignment) {
  const std::uint64_t missing = (alignment - size_ % alignment) % alignment;
  write(std::string(missing, '\0'));
}

result<void> new_file::commit() {
  out_.close();
  if (out_.fail()) return error{error_kind::io, "writing failed; is the disk full?", temporary_.string()};
  if (!on_disk(temporary_)) return error{error_kind::io, "writing failed; is the disk full?", temporary_.string()};
  std::error_code failure;
  std::filesystem::rename(temporary_, path_, failure);
  if (failure) return error{error_kind::io, "cannot take its final name: " + failure.message(), temporary_.string()};
  temporary_.clear();
  return {};
}

}  // namespace troupe::model
