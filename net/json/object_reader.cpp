#include "net/json/object_reader.hpp"

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <cmath>
#include <cstdio>

namespace troupe::net {
namespace {

namespace json = boost::json;

/// "0", "0.5", "2": the shortest form for a bound in a message.
std::string shown(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.15g", value);
  return text;
}

std::string but_is(const json::value& value) { return ", but is " + std::string(kind_name(value)); }

std::optional<std::int64_t> exact_integer(const json::value& value) {
  if (value.is_int64()) return value.get_int64();
  return std::nullopt;
}

/// Whether its range is all that an integer lacks: those beyond 64 bits are parsed as doubles.
bool is_whole(const json::value& value) {
  constexpr double first_beyond = 9.2e18;
  return value.is_int64() || value.is_uint64() || (value.is_double() && std::fabs(value.get_double()) >= first_beyond);
}

}  // namespace

std::string_view kind_name(const json::value& value) {
  switch (value.kind()) {
    case json::kind::null:
      return "null";
    case json::kind::bool_:
      return "a boolean";
    case json::kind::int64:
    case json::kind::uint64:
      return "an integer";
    case json::kind::double_:
      return "a number with a fraction or exponent";
    case json::kind::string:
      return "a string";
    case json::kind::array:
      return "an array";
    case json::kind::object:
      return "an object";
  }
  return "unknown";
}

object_reader::object_reader(const json::object& object, std::string place)
    : object_(object), place_(std::move(place)) {}

std::string object_reader::place_of(std::string_view name) const {
  return place_.empty() ? std::string(name) : place_ + "." + std::string(name);
}

void object_reader::fail(std::string_view name, std::string message) {
  fail(error{error_kind::invalid, std::move(message), place_of(name)});
}

void object_reader::fail(error failure) {
  if (!failure_) failure_ = std::move(failure);
}

const json::value* object_reader::any(std::string_view name) const {
  const auto* found = object_.if_contains({name.data(), name.size()});
  return found && !found->is_null() ? found : nullptr;
}

std::optional<std::int64_t> object_reader::integer(std::string_view name, std::int64_t low, std::int64_t high) {
  const auto* value = any(name);
  if (!value || failure_) return std::nullopt;
  const auto whole = exact_integer(*value);
  if (whole && *whole >= low && *whole <= high) return whole;
  const std::string range = "must be an integer from " + std::to_string(low) + " to " + std::to_string(high);
  fail(name, is_whole(*value) ? range : range + but_is(*value));
  return std::nullopt;
}

std::optional<double> object_reader::number(std::string_view name, double low, double high) {
  const auto* value = any(name);
  if (!value || failure_) return std::nullopt;
  if (value->is_number()) {
    const double given = value->to_number<double>();
    if (given >= low && given <= high) return given;
  }
  const std::string range = "must be a number from " + shown(low) + " to " + shown(high);
  fail(name, value->is_number() ? range : range + but_is(*value));
  return std::nullopt;
}

std::optional<bool> object_reader::boolean(std::string_view name) {
  const auto* value = any(name);
  if (!value || failure_) return std::nullopt;
  if (value->is_bool()) return value->get_bool();
  fail(name, "must be true or false" + but_is(*value));
  return std::nullopt;
}

std::optional<std::string> object_reader::text(std::string_view name) {
  const auto* value = any(name);
  if (!value || failure_) return std::nullopt;
  if (value->is_string()) return std::string(value->get_string());
  fail(name, "must be a string" + but_is(*value));
  return std::nullopt;
}

const json::object* object_reader::object(std::string_view name) {
  const auto* value = any(name);
  if (!value || failure_) return nullptr;
  if (value->is_object()) return &value->get_object();
  fail(name, "must be an object" + but_is(*value));
  return nullptr;
}

const json::array* object_reader::array(std::string_view name) {
  const auto* value = any(name);
  if (!value || failure_) return nullptr;
  if (value->is_array()) return &value->get_array();
  fail(name, "must be an array" + but_is(*value));
  return nullptr;
}

std::optional<std::vector<token_id>> object_reader::ids(std::string_view name, std::size_t vocabulary) {
  const auto* values = array(name);
  if (!values) return std::nullopt;
  auto read = read_ids(*values, place_of(name), vocabulary);
  if (read) return *std::move(read);
  fail(read.error());
  return std::nullopt;
}

result<std::vector<token_id>> read_ids(const json::array& array, const std::string& place, std::size_t vocabulary) {
  std::vector<token_id> ids;
  ids.reserve(array.size());
  for (const json::value& value : array) {
    const auto id = exact_integer(value);
    if (!id || *id < 0 || static_cast<std::uint64_t>(*id) >= vocabulary) {
      std::string message = "must be a token id from 0 to " + std::to_string(vocabulary ? vocabulary - 1 : 0);
      if (!is_whole(value)) message += but_is(value);
      return error{error_kind::invalid, std::move(message), place + "[" + std::to_string(ids.size()) + "]"};
    }
    ids.push_back(static_cast<token_id>(*id));
  }
  return ids;
}

}  // namespace troupe::net
