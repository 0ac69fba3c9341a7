#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace troupe::model {

/// A JSON value together with the way to it, so that a wrong one is reported as "tokenizer.json: model.merges[3]". The
/// first error is kept in a place shared by all fields of a document; after it every reading gives an empty value.
class json_field {
 public:
  json_field(const boost::json::value* value, std::string path, std::string_view file, std::optional<error>& failure)
      : value_(value), path_(std::move(path)), file_(file), failure_(&failure) {}

  bool present() const { return value_ && !value_->is_null(); }
  std::string place() const { return path_.empty() ? std::string(file_) : std::string(file_) + ": " + path_; }
  void fail(std::string message, error_kind kind = error_kind::corrupt) const {
    if (!*failure_) *failure_ = error{kind, std::move(message), place()};
  }
  bool failed() const { return failure_->has_value(); }

  /// A member; absent if there is none. `required`: that is an error.
  json_field at(std::string_view key, bool required = false) const;
  json_field at(std::size_t index) const;

  const boost::json::object& object() const;
  const boost::json::array& array() const;
  std::string_view string() const;
  bool boolean() const;
  bool boolean_or(bool otherwise) const { return present() ? boolean() : otherwise; }
  std::int64_t integer(std::int64_t least, std::int64_t most) const;

  bool is_string() const { return value_ && value_->is_string(); }
  bool is_array() const { return value_ && value_->is_array(); }
  bool is_object() const { return value_ && value_->is_object(); }

 private:
  const boost::json::value* value_;
  std::string path_;
  std::string_view file_;
  std::optional<error>* failure_;
};

}  // namespace troupe::model
