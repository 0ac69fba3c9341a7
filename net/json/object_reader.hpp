#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"

namespace troupe::net {

/// Reads members of a request's JSON object by name, type and range, so that a codec is a list of fields instead of a
/// list of checks. The first fault is kept and later reads give nothing: ask `failure` once at the end. A member that
/// is null counts as absent, as OpenAI's clients send it. Types are strict: "5", true and 1.0 are no integers.
class object_reader {
 public:
  /// `place` is the object's own path ("stream_options"); empty for the body. `object` must outlive the reader.
  explicit object_reader(const boost::json::object& object, std::string place = {});

  const boost::json::value* any(std::string_view name) const;  ///< Null when absent or JSON null.
  bool has(std::string_view name) const { return any(name) != nullptr; }

  std::optional<std::int64_t> integer(std::string_view name, std::int64_t low, std::int64_t high);
  std::optional<double> number(std::string_view name, double low, double high);
  std::optional<bool> boolean(std::string_view name);
  std::optional<std::string> text(std::string_view name);
  const boost::json::object* object(std::string_view name);
  const boost::json::array* array(std::string_view name);

  /// An array of token ids, each in [0, vocabulary).
  std::optional<std::vector<token_id>> ids(std::string_view name, std::size_t vocabulary);

  /// Records a fault of `name` unless there was one before.
  void fail(std::string_view name, std::string message);
  void fail(error failure);

  std::string place_of(std::string_view name) const;
  const std::optional<error>& failure() const { return failure_; }

 private:
  const boost::json::object& object_;
  std::string place_;
  std::optional<error> failure_;
};

/// "a string", "an array": for messages that say what was found.
std::string_view kind_name(const boost::json::value& value);

/// The ids in `array`, or an error whose place is "`place`[3]".
result<std::vector<token_id>> read_ids(const boost::json::array& array, const std::string& place,
                                       std::size_t vocabulary);

}  // namespace troupe::net
