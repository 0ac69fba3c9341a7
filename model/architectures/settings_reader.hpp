#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/files/gguf.hpp"

/// Readers of model settings with a sticky error: descriptors of architectures read key after key without a branch
/// each, and the first key that is missing, of a wrong type or out of range is reported at the end, with its name.
namespace troupe::model {

inline constexpr std::uint64_t max_setting = 1U << 30U;  ///< No size in a model's configuration is larger.

/// config.json, or one object inside it.
class config_reader {
 public:
  /// `place`: "folder/config.json". `failure` collects the first error and is shared with nested readers.
  config_reader(const boost::json::object& object, std::string place, std::optional<error>& failure)
      : object_(&object), place_(std::move(place)), failure_(&failure) {}

  /// Keys may be given with alternatives, first match wins; null counts as absent. Without a fallback, absence is an
  /// error.
  std::uint32_t size(std::initializer_list<std::string_view> keys, std::optional<std::uint32_t> fallback = {}) const;
  double number(std::initializer_list<std::string_view> keys, std::optional<double> fallback = {}) const;
  bool flag(std::initializer_list<std::string_view> keys, std::optional<bool> fallback = {}) const;
  std::string text(std::initializer_list<std::string_view> keys, std::optional<std::string> fallback = {}) const;
  std::vector<std::uint32_t> sizes(std::string_view key) const;     ///< Absent: empty.
  std::vector<std::string> texts(std::string_view key) const;       ///< Absent: empty.
  std::optional<config_reader> object(std::string_view key) const;  ///< Absent: nothing.
  bool has(std::string_view key) const { return find({key}) != nullptr; }

  void fail(error_kind kind, std::string_view key, const std::string& message) const;
  const boost::json::object& json() const { return *object_; }

 private:
  const boost::json::value* find(std::initializer_list<std::string_view> keys) const;
  std::string path(std::string_view key) const { return place_ + ": " + std::string(key); }

  const boost::json::object* object_;
  std::string place_;
  std::optional<error>* failure_;
};

/// The "<architecture>.*" metadata of a GGUF file.
class gguf_settings {
 public:
  gguf_settings(const gguf_file& file, std::string prefix, std::optional<error>& failure)
      : file_(&file), prefix_(std::move(prefix)), failure_(&failure) {}

  std::uint32_t size(std::string_view key, std::optional<std::uint32_t> fallback = {}) const;
  double number(std::string_view key, std::optional<double> fallback = {}) const;
  bool flag(std::string_view key, bool fallback) const;
  std::string text(std::string_view key, std::string fallback) const;

  bool has_tensor(std::string_view name) const { return file_->tensors().contains(name); }
  const gguf_file& file() const { return *file_; }
  void fail(error_kind kind, std::string_view key, const std::string& message) const;

 private:
  std::string full(std::string_view key) const { return prefix_ + "." + std::string(key); }

  const gguf_file* file_;
  std::string prefix_;
  std::optional<error>* failure_;
};

}  // namespace troupe::model
