#include "model/files/gguf.hpp"

#include "model/files/gguf_types.hpp"

namespace troupe::model {

const gguf_value* gguf_file::find(std::string_view key) const {
  const auto it = index_.find(key);
  return it == index_.end() ? nullptr : &entries_[it->second].value;
}

std::optional<std::string_view> gguf_file::text(std::string_view key) const {
  const auto* value = find(key);
  const auto* text = value == nullptr ? nullptr : std::get_if<std::string_view>(value);
  return text == nullptr ? std::nullopt : std::optional(*text);
}

error gguf_file::wrong_type(std::string_view key, std::string_view wanted) const {
  return error{error_kind::corrupt, "metadata key '" + std::string(key) + "' is not " + std::string(wanted), name_};
}

result<std::optional<std::uint64_t>> gguf_file::unsigned_value(std::string_view key) const {
  const auto* value = find(key);
  if (value == nullptr) return std::optional<std::uint64_t>();
  if (const auto* u = std::get_if<std::uint64_t>(value)) return std::optional(*u);
  if (const auto* i = std::get_if<std::int64_t>(value); i != nullptr && *i >= 0)
    return std::optional(static_cast<std::uint64_t>(*i));
  return wrong_type(key, "a non-negative integer");
}

result<std::optional<double>> gguf_file::number(std::string_view key) const {
  const auto* value = find(key);
  if (value == nullptr) return std::optional<double>();
  if (const auto* d = std::get_if<double>(value)) return std::optional(*d);
  if (const auto* u = std::get_if<std::uint64_t>(value)) return std::optional(static_cast<double>(*u));
  if (const auto* i = std::get_if<std::int64_t>(value)) return std::optional(static_cast<double>(*i));
  return wrong_type(key, "a number");
}

result<std::optional<bool>> gguf_file::boolean(std::string_view key) const {
  const auto* value = find(key);
  if (value == nullptr) return std::optional<bool>();
  if (const auto* b = std::get_if<bool>(value)) return std::optional(*b);
  return wrong_type(key, "a boolean");
}

result<std::optional<std::vector<std::string_view>>> gguf_file::strings(std::string_view key) const {
  const auto* value = find(key);
  if (value == nullptr) return std::optional<std::vector<std::string_view>>();
  const auto* array = std::get_if<gguf_array>(value);
  if (array == nullptr || array->type != gguf_type::string) return wrong_type(key, "an array of strings");
  std::vector<std::string_view> out;
  out.reserve(array->count);  // at most an eighth of the file's bytes
  // The lengths were checked when the file was opened; a file that is being written over may hold others by now.
  std::span<const std::byte> rest = array->bytes;
  for (std::uint64_t i = 0; i < array->count; ++i) {
    const std::uint64_t length = rest.size() < 8 ? 0 : load<std::uint64_t>(rest.data());
    if (rest.size() < 8 || length > rest.size() - 8)
      return error{error_kind::corrupt, "metadata '" + std::string(key) + "' changed while it was read", {}};
    out.emplace_back(reinterpret_cast<const char*>(rest.data() + 8), length);
    rest = rest.subspan(8 + length);
  }
  return std::optional(std::move(out));
}

result<std::optional<std::vector<double>>> gguf_file::numbers(std::string_view key, std::uint64_t limit) const {
  const auto* value = find(key);
  if (value == nullptr) return std::optional<std::vector<double>>();
  const auto* array = std::get_if<gguf_array>(value);
  if (array == nullptr || array->type == gguf_type::string || array->type == gguf_type::array ||
      array->type == gguf_type::boolean)
    return wrong_type(key, "an array of numbers");
  if (array->count > limit) return wrong_type(key, "an array of at most " + std::to_string(limit) + " numbers");
  const std::uint64_t each = fixed_size(array->type);
  std::vector<double> out;
  out.reserve(array->count);
  for (std::uint64_t i = 0; i < array->count; ++i) {
    const gguf_value element = load_scalar(array->type, array->bytes.data() + i * each);
    if (const auto* d = std::get_if<double>(&element))
      out.push_back(*d);
    else if (const auto* u = std::get_if<std::uint64_t>(&element))
      out.push_back(static_cast<double>(*u));
    else
      out.push_back(static_cast<double>(std::get<std::int64_t>(element)));
  }
  return std::optional(std::move(out));
}

}  // namespace troupe::model
