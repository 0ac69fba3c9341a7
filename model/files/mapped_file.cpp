#include "model/files/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace troupe::model {
namespace {

/// A descriptor that is closed on every way out.
struct descriptor {
  int fd = -1;
  explicit descriptor(int value) : fd(value) {}
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  ~descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

error system_error(const std::string& what, const std::string& place) {
  const error_kind kind = errno == ENOENT ? error_kind::not_found : error_kind::io;
  return error{kind, what + ": " + std::strerror(errno), place};
}

}  // namespace

result<mapped_file> mapped_file::open(const std::filesystem::path& path) {
  const descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // a pipe must not block
  if (file.fd < 0) return system_error("cannot open", path);
  struct stat status {};
  if (::fstat(file.fd, &status) != 0) return system_error("cannot stat", path);
  if (!S_ISREG(status.st_mode)) return error{error_kind::invalid, "is not a regular file", path};
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return error{error_kind::corrupt, "the file is empty", path};
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.fd, 0);
  if (data == MAP_FAILED) return system_error("cannot map", path);
  return mapped_file(static_cast<const std::byte*>(data), size, path);
}

mapped_file::mapped_file(mapped_file&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      name_(std::move(other.name_)),
      guard_(std::move(other.guard_)) {}

mapped_file& mapped_file::operator=(mapped_file&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(name_, other.name_);
  guard_ = std::move(other.guard_);
  return *this;
}

mapped_file::~mapped_file() {
  guard_ = {};
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

result<std::string> read_text(const std::filesystem::path& path, std::size_t limit) {
  auto file = mapped_file::open(path);
  if (!file) return std::move(file).error();
  const auto bytes = file->bytes();
  if (bytes.size() > limit)
    return error{error_kind::too_large,
                 "has " + std::to_string(bytes.size()) + " bytes, at most " + std::to_string(limit) + " are read",
                 path};
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (auto read = check_readable(bytes); !read) return std::move(read).error();
  return text;
}

}  // namespace troupe::model
