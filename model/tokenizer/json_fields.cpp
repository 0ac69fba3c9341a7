#include "model/tokenizer/json_fields.hpp"

namespace troupe::model {
namespace {

const boost::json::object no_object;
const boost::json::array no_array;

}  // namespace

json_field json_field::at(std::string_view key, bool required) const {
  const auto& members = object();
  const auto* found = members.if_contains(key);
  json_field out(found, path_.empty() ? std::string(key) : path_ + '.' + std::string(key), file_, *failure_);
  if (required && !out.present()) out.fail("the field is missing");
  return out;
}

json_field json_field::at(std::size_t index) const {
  const auto& items = array();
  return {index < items.size() ? &items[index] : nullptr, path_ + '[' + std::to_string(index) + ']', file_, *failure_};
}

const boost::json::object& json_field::object() const {
  if (value_ && value_->is_object()) return value_->get_object();
  fail("this must be an object");
  return no_object;
}

const boost::json::array& json_field::array() const {
  if (value_ && value_->is_array()) return value_->get_array();
  fail("this must be a list");
  return no_array;
}

std::string_view json_field::string() const {
  if (value_ && value_->is_string()) return value_->get_string();
  fail("this must be a text");
  return {};
}

bool json_field::boolean() const {
  if (value_ && value_->is_bool()) return value_->get_bool();
  fail("this must be true or false");
  return false;
}

std::int64_t json_field::integer(std::int64_t least, std::int64_t most) const {
  std::int64_t out = least;
  if (value_ && value_->is_int64() && (out = value_->get_int64()) >= least && out <= most) return out;
  fail("this must be a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  return least;
}

}  // namespace troupe::model
