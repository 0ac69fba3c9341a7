#include "model/architectures/settings_reader.hpp"

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <cmath>

namespace troupe::model {
namespace {

namespace json = boost::json;

std::optional<std::uint32_t> as_size(const json::value& value) {
  if (const auto* i = value.if_int64(); i != nullptr && *i >= 0 && static_cast<std::uint64_t>(*i) <= max_setting)
    return static_cast<std::uint32_t>(*i);
  return std::nullopt;
}

std::optional<double> as_number(const json::value& value) {
  if (const auto* d = value.if_double()) return *d;
  if (const auto* i = value.if_int64()) return static_cast<double>(*i);
  if (const auto* u = value.if_uint64()) return static_cast<double>(*u);
  return std::nullopt;
}

void keep_first(std::optional<error>& failure, error next) {
  if (!failure) failure = std::move(next);
}

}  // namespace

const json::value* config_reader::find(std::initializer_list<std::string_view> keys) const {
  for (const auto key : keys) {
    const auto* value = object_->if_contains(json::string_view(key.data(), key.size()));
    if (value != nullptr && !value->is_null()) return value;
  }
  return nullptr;
}

void config_reader::fail(error_kind kind, std::string_view key, const std::string& message) const {
  keep_first(*failure_, error{kind, message, path(key)});
}

std::uint32_t config_reader::size(std::initializer_list<std::string_view> keys,
                                  std::optional<std::uint32_t> fallback) const {
  const auto* value = find(keys);
  if (value == nullptr) {
    if (!fallback) fail(error_kind::corrupt, *keys.begin(), "is missing");
    return fallback.value_or(1);
  }
  if (const auto size = as_size(*value)) return *size;
  fail(error_kind::corrupt, *keys.begin(), "must be an integer from 0 to " + std::to_string(max_setting));
  return 1;
}

double config_reader::number(std::initializer_list<std::string_view> keys, std::optional<double> fallback) const {
  const auto* value = find(keys);
  if (value == nullptr) {
    if (!fallback) fail(error_kind::corrupt, *keys.begin(), "is missing");
    return fallback.value_or(1.0);
  }
  if (const auto number = as_number(*value); number && std::isfinite(*number)) return *number;
  fail(error_kind::corrupt, *keys.begin(), "must be a finite number");
  return 1.0;
}

bool config_reader::flag(std::initializer_list<std::string_view> keys, std::optional<bool> fallback) const {
  const auto* value = find(keys);
  if (value == nullptr) {
    if (!fallback) fail(error_kind::corrupt, *keys.begin(), "is missing");
    return fallback.value_or(false);
  }
  if (const auto* flag = value->if_bool()) return *flag;
  fail(error_kind::corrupt, *keys.begin(), "must be true or false");
  return false;
}

std::string config_reader::text(std::initializer_list<std::string_view> keys,
                                std::optional<std::string> fallback) const {
  const auto* value = find(keys);
  if (value == nullptr) {
    if (!fallback) fail(error_kind::corrupt, *keys.begin(), "is missing");
    return fallback.value_or("");
  }
  if (const auto* text = value->if_string()) return std::string(text->data(), text->size());
  fail(error_kind::corrupt, *keys.begin(), "must be a string");
  return "";
}

std::vector<std::uint32_t> config_reader::sizes(std::string_view key) const {
  const auto* value = find({key});
  if (value == nullptr) return {};
  std::vector<std::uint32_t> out;
  const auto* list = value->if_array();
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const auto size = as_size((*list)[i]);
    if (!size)
      list = nullptr;
    else
      out.push_back(*size);
  }
  if (list == nullptr) fail(error_kind::corrupt, key, "must be a list of non-negative integers");
  return out;
}

std::vector<std::string> config_reader::texts(std::string_view key) const {
  const auto* value = find({key});
  if (value == nullptr) return {};
  std::vector<std::string> out;
  const auto* list = value->if_array();
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const auto* text = (*list)[i].if_string();
    if (text == nullptr)
      list = nullptr;
    else
      out.emplace_back(text->data(), text->size());
  }
  if (list == nullptr) fail(error_kind::corrupt, key, "must be a list of strings");
  return out;
}

std::optional<config_reader> config_reader::object(std::string_view key) const {
  const auto* value = find({key});
  if (value == nullptr) return std::nullopt;
  if (const auto* object = value->if_object()) return config_reader(*object, path(key), *failure_);
  fail(error_kind::corrupt, key, "must be an object");
  return std::nullopt;
}

void gguf_settings::fail(error_kind kind, std::string_view key, const std::string& message) const {
  keep_first(*failure_, error{kind, "metadata key '" + full(key) + "' " + message, file_->name()});
}

std::uint32_t gguf_settings::size(std::string_view key, std::optional<std::uint32_t> fallback) const {
  auto value = file_->unsigned_value(full(key));
  if (!value) {
    keep_first(*failure_, std::move(value).error());
    return fallback.value_or(1);
  }
  if (!*value) {
    if (!fallback) fail(error_kind::corrupt, key, "is missing");
    return fallback.value_or(1);
  }
  if (**value <= max_setting) return static_cast<std::uint32_t>(**value);
  fail(error_kind::corrupt, key,
       "is " + std::to_string(**value) + "; at most " + std::to_string(max_setting) + " is allowed");
  return 1;
}

double gguf_settings::number(std::string_view key, std::optional<double> fallback) const {
  auto value = file_->number(full(key));
  if (!value) {
    keep_first(*failure_, std::move(value).error());
    return fallback.value_or(1.0);
  }
  if (!*value && !fallback) fail(error_kind::corrupt, key, "is missing");
  const double number = value->value_or(fallback.value_or(1.0));
  if (std::isfinite(number)) return number;
  fail(error_kind::corrupt, key, "must be a finite number");
  return 1.0;
}

bool gguf_settings::flag(std::string_view key, bool fallback) const {
  auto value = file_->boolean(full(key));
  if (value) return value->value_or(fallback);
  keep_first(*failure_, std::move(value).error());
  return fallback;
}

std::string gguf_settings::text(std::string_view key, std::string fallback) const {
  const auto* value = file_->find(full(key));
  if (value == nullptr) return fallback;
  if (const auto* text = std::get_if<std::string_view>(value)) return std::string(*text);
  keep_first(*failure_, file_->wrong_type(full(key), "a string"));
  return fallback;
}

}  // namespace troupe::model
