#include "model/files/safetensors.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "base/json/strict_json.hpp"

namespace troupe::model {
namespace {

namespace json = boost::json;

constexpr std::uint64_t max_header_bytes = 100'000'000;
constexpr std::size_t max_tensors = 10'000'000;

struct plain_type {
  std::string_view name;
  std::uint32_t bits;
};
/// The types of the format, for those that Troupe passes over: their sizes are still checked.
constexpr plain_type other_types[] = {
    {"BOOL", 8}, {"U8", 8},      {"F8_E5M2", 8}, {"F8_E8M0", 8},     {"I16", 16},       {"U16", 16},
    {"I32", 32}, {"U32", 32},    {"F64", 64},    {"I64", 64},        {"U64", 64},       {"C64", 64},
    {"F4", 4},   {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}};

std::optional<std::uint32_t> bits_of_other(std::string_view name) {
  for (const auto& type : other_types)
    if (type.name == name) return type.bits;
  return std::nullopt;
}

/// A non-negative integer that JSON wrote as one.
std::optional<std::uint64_t> as_count(const json::value& value) {
  if (const auto* i = value.if_int64(); i != nullptr && *i >= 0) return static_cast<std::uint64_t>(*i);
  if (const auto* u = value.if_uint64()) return *u;
  return std::nullopt;
}

/// Parses one entry of the header. `data`: the bytes after the header.
class entry_reader {
 public:
  entry_reader(const std::string& file, std::span<const std::byte> data) : file_(file), data_(data) {}

  result<stored_tensor> read(std::string_view name, const json::value& value) const {
    const auto* entry = value.if_object();
    if (entry == nullptr) return fail(name, "is not described by an object");
    stored_tensor tensor;
    tensor.file = file_;
    const auto* type = member(*entry, "dtype");
    if (type == nullptr || !type->is_string()) return fail(name, "dtype is missing or not a string");
    tensor.type_name.assign(type->get_string().data(), type->get_string().size());
    auto count = read_shape(name, *entry, tensor);
    if (!count) return std::move(count).error();
    auto range = read_offsets(name, *entry);
    if (!range) return std::move(range).error();
    const auto [begin, end] = *range;
    auto wanted = wanted_bytes(name, tensor, *count);
    if (!wanted) return std::move(wanted).error();
    if (*wanted && end - begin != **wanted)
      return fail(name, "data_offsets span " + std::to_string(end - begin) + " bytes, but " + tensor.type_name + " " +
                            shape_text(tensor.shape) + " takes " + std::to_string(**wanted));
    tensor.bytes = data_.subspan(begin, end - begin);
    return tensor;
  }

 private:
  static const json::value* member(const json::object& entry, std::string_view key) {
    return entry.if_contains(json::string_view(key.data(), key.size()));
  }

  error fail(std::string_view name, const std::string& message) const {
    return error{error_kind::corrupt, "tensor '" + std::string(name) + "': " + message, file_ + ": header"};
  }

  result<std::uint64_t> read_shape(std::string_view name, const json::object& entry, stored_tensor& tensor) const {
    const auto* shape = member(entry, "shape");
    if (shape == nullptr || !shape->is_array()) return fail(name, "shape is missing or not a list");
    if (shape->get_array().size() > 8) return fail(name, "shape has more than 8 dimensions");
    std::uint64_t count = 1;
    for (const auto& dimension : shape->get_array()) {
      const auto size = as_count(dimension);
      if (!size) return fail(name, "shape holds something that is not a non-negative integer");
      tensor.shape.push_back(*size);
      if (__builtin_mul_overflow(count, *size, &count)) return fail(name, "the product of its shape overflows");
    }
    return count;
  }

  result<std::pair<std::uint64_t, std::uint64_t>> read_offsets(std::string_view name, const json::object& entry) const {
    const auto* offsets = member(entry, "data_offsets");
    if (offsets == nullptr || !offsets->is_array() || offsets->get_array().size() != 2)
      return fail(name, "data_offsets is missing or not a list of two");
    const auto begin = as_count(offsets->get_array()[0]);
    const auto end = as_count(offsets->get_array()[1]);
    if (!begin || !end) return fail(name, "data_offsets are not two non-negative integers");
    if (*begin > *end) return fail(name, "data_offsets end before they begin");
    if (*end > data_.size())
      return fail(name, "data_offsets end at byte " + std::to_string(*end) + " of the data, which has " +
                            std::to_string(data_.size()) + (*begin < data_.size() ? ": is the file truncated?" : ""));
    return std::pair(*begin, *end);
  }

  /// Nothing for a type that the format's description does not list: a tensor of it takes what its offsets say.
  result<std::optional<std::uint64_t>> wanted_bytes(std::string_view name, stored_tensor& tensor,
                                                    std::uint64_t count) const {
    if (const auto type = dtype_from_name(tensor.type_name); type && *type <= dtype::f8_e4m3) {
      tensor.type = *type;
      if (const auto bytes = bytes_of(*type, count)) return bytes;
      return fail(name, "its size overflows");
    }
    tensor.readable = false;
    const auto bits = bits_of_other(tensor.type_name);
    if (!bits) return std::optional<std::uint64_t>();
    std::uint64_t total = 0;
    if (__builtin_mul_overflow(count, std::uint64_t{*bits}, &total)) return fail(name, "its size overflows");
    if (total % 8 != 0) return fail(name, "its values fill no whole bytes");
    return std::optional(total / 8);
  }

  const std::string& file_;
  std::span<const std::byte> data_;
};

/// The data part must be covered exactly: no byte twice, none unused.
result<void> check_coverage(const mapped_file& file, const tensor_table& found, std::span<const std::byte> data) {
  std::vector<claimed_range> ranges;
  for (const auto& [name, tensor] : found) {
    const auto begin = static_cast<std::uint64_t>(tensor.bytes.data() - data.data());
    ranges.push_back({begin, begin + tensor.bytes.size(), name});
  }
  const auto fail = [&](const std::string& message) {
    return error{error_kind::corrupt, message, file.name() + ": header"};
  };
  if (const auto* twice = find_overlap(ranges))
    return fail("tensor '" + std::string(twice->owner) + "': data_offsets overlap another tensor's");
  std::uint64_t covered = 0;
  for (const auto& range : ranges) {
    if (range.begin != covered)
      return fail("bytes " + std::to_string(covered) + " to " + std::to_string(range.begin) +
                  " of the data belong to no tensor (data_offsets leave a hole)");
    covered = range.end;
  }
  if (covered != data.size())
    return fail(std::to_string(data.size() - covered) +
                " bytes follow the last tensor (data_offsets leave them unused)");
  return {};
}

}  // namespace

result<void> read_safetensors(const mapped_file& file, tensor_table& table) {
  const auto bytes = file.bytes();
  const auto fail = [&](const std::string& message) {
    return error{error_kind::corrupt, message, file.name() + ": byte 0"};
  };
  if (bytes.size() < 8) return fail("too short for a safetensors header length");
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  if (length > bytes.size() - 8)
    return fail("the header length says " + std::to_string(length) + " bytes, but " + std::to_string(bytes.size() - 8) +
                " follow");
  if (length > max_header_bytes)
    return fail("the header length says " + std::to_string(length) + " bytes; the format allows " +
                std::to_string(max_header_bytes));
  const std::string_view header(reinterpret_cast<const char*>(bytes.data()) + 8, length);
  auto parsed = parse_json(header, 16, max_tensors);
  if (!parsed) {
    const auto& failure = parsed.error();
    return error{error_kind::corrupt, failure.message,
                 file.name() + ": header" + (failure.place.empty() ? "" : ", " + failure.place)};
  }
  const auto* entries = parsed->if_object();
  if (entries == nullptr)
    return error{error_kind::corrupt, "the header is not a JSON object", file.name() + ": byte 8"};

  const auto data = bytes.subspan(8 + length);
  const entry_reader reader(file.name(), data);
  tensor_table found;
  for (const auto& member : *entries) {
    const std::string name(member.key().data(), member.key().size());
    if (name == "__metadata__") {
      if (!member.value().is_object())
        return error{error_kind::corrupt, "__metadata__ is not an object of strings", file.name() + ": header"};
      for (const auto& pair : member.value().get_object())
        if (!pair.value().is_string())
          return error{error_kind::corrupt, "__metadata__ holds a value that is not a string",
                       file.name() + ": header"};
      continue;
    }
    auto tensor = reader.read(name, member.value());
    if (!tensor) return std::move(tensor).error();
    if (table.contains(name))
      return error{error_kind::corrupt, "tensor '" + name + "' is also in " + table.find(name)->second.file,
                   file.name() + ": header"};
    found.emplace(name, *std::move(tensor));
  }
  if (auto covered = check_coverage(file, found, data); !covered) return covered;
  table.merge(found);
  return {};
}

}  // namespace troupe::model
