#include <limits>

#include "base/json/utf8.hpp"
#include "model/files/gguf.hpp"
#include "model/files/gguf_types.hpp"

namespace troupe::model {
namespace {

constexpr std::uint64_t max_key_bytes = 65535;         // gguf.md: keys are at most 2^16 - 1 bytes
constexpr std::uint64_t max_tensor_name_bytes = 1024;  // generous: the specification says 64
constexpr std::uint32_t max_dimensions = 4;
constexpr int max_array_depth = 4;
constexpr std::uint64_t max_alignment = 1 << 20;

}  // namespace

/// Reads a file front to back; the first failure stops it and is kept with its offset.
class gguf_reader {
 public:
  explicit gguf_reader(const mapped_file& file) : bytes_(file.bytes()) { out_.name_ = file.name(); }

  result<gguf_file> read() {
    if (!(read_counts() && read_metadata() && read_alignment() && read_tensors() && place_tensors()))
      return std::move(failure_);
    return std::move(out_);
  }

 private:
  struct described_tensor {
    std::string name;
    stored_tensor tensor;
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
  };

  std::uint64_t left() const { return bytes_.size() - at_; }

  bool fail(const std::string& message) { return fail_at(at_, message); }
  bool fail_at(std::uint64_t offset, const std::string& message) {
    failure_ = error{error_kind::corrupt, message, out_.name_ + ": byte " + std::to_string(offset)};
    return false;
  }

  template <class T>
  bool take(T& value, std::string_view what) {
    if (left() < sizeof(T)) return fail("the file ends inside " + std::string(what));
    value = load<T>(bytes_.data() + at_);
    at_ += sizeof(T);
    return true;
  }

  bool take_string(std::string_view& value, std::uint64_t limit, std::string_view what) {
    std::uint64_t length = 0;
    const std::uint64_t start = at_;
    if (!take(length, what)) return false;
    if (length > limit)
      return fail_at(start, std::string(what) + " has a length of " + std::to_string(length) + " bytes; at most " +
                                std::to_string(limit) + " are allowed");
    if (length > left())
      return fail_at(start, std::string(what) + " has a length of " + std::to_string(length) + " bytes, but " +
                                std::to_string(left()) + " remain");
    value = {reinterpret_cast<const char*>(bytes_.data() + at_), length};
    at_ += length;
    return true;
  }

  bool read_counts() {
    std::uint32_t magic = 0;
    if (!take(magic, "the magic number")) return false;
    if (magic != 0x46554747U) return fail_at(0, "this is not a GGUF file (magic number)");
    if (!take(out_.version_, "the version")) return false;
    if (out_.version_ == 0x02000000U || out_.version_ == 0x03000000U)
      return fail_at(4, "this is a big-endian GGUF file (version field); only little-endian ones can be read");
    if (out_.version_ != 2 && out_.version_ != 3)
      return fail_at(4, "GGUF version " + std::to_string(out_.version_) + " is unknown; versions 2 and 3 can be read");
    if (!take(tensor_count_, "the tensor count") || !take(key_count_, "the metadata count")) return false;
    // A tensor takes at least 24 bytes of header, a key at least 13.
    if (tensor_count_ > left() / 24)
      return fail_at(8, "the tensor count " + std::to_string(tensor_count_) + " does not fit the file");
    if (key_count_ > left() / 13)
      return fail_at(16, "the metadata count " + std::to_string(key_count_) + " does not fit the file");
    return true;
  }

  bool read_metadata() {
    for (std::uint64_t i = 0; i < key_count_; ++i) {
      const std::uint64_t start = at_;
      std::string_view key;
      if (!take_string(key, max_key_bytes, "a metadata key")) return false;
      if (key.empty()) return fail_at(start, "a metadata key is empty");
      if (valid_utf8_prefix(key) != key.size()) return fail_at(start, "a metadata key is not valid UTF-8");
      key_ = key;
      gguf_value value;
      if (!take_value(value)) return false;
      if (!out_.index_.emplace(key, out_.entries_.size()).second)
        return fail_at(start, "metadata key '" + std::string(key) + "' appears twice");
      out_.entries_.push_back({std::string(key), value, bytes_.subspan(start, at_ - start)});
    }
    return true;
  }

  bool take_type(gguf_type& type) {
    std::uint32_t number = 0;
    const std::uint64_t start = at_;
    if (!take(number, "the type of '" + key_ + "'")) return false;
    if (number > static_cast<std::uint32_t>(gguf_type::f64))
      return fail_at(start, "metadata key '" + key_ + "' has unknown type " + std::to_string(number));
    type = static_cast<gguf_type>(number);
    return true;
  }

  bool take_value(gguf_value& value) {
    gguf_type type{};
    if (!take_type(type)) return false;
    if (type == gguf_type::string) {
      std::string_view text;
      if (!take_string(text, std::numeric_limits<std::uint64_t>::max(), "metadata key '" + key_ + "'")) return false;
      value = text;
      return true;
    }
    if (type == gguf_type::array) {
      gguf_array array;
      if (!take_array(array, 1)) return false;
      value = array;
      return true;
    }
    if (left() < fixed_size(type)) return fail("the file ends inside metadata key '" + key_ + "'");
    value = load_scalar(type, bytes_.data() + at_);
    at_ += fixed_size(type);
    return true;
  }

  /// Walks over an array, so that its bounds are known to be sound.
  bool take_array(gguf_array& array, int depth) {
    const std::uint64_t start = at_;
    if (depth > max_array_depth) return fail("metadata key '" + key_ + "' nests arrays too deeply");
    if (!take_type(array.type) || !take(array.count, "the length of '" + key_ + "'")) return false;
    const std::uint64_t each = array.type == gguf_type::string  ? 8
                               : array.type == gguf_type::array ? 12
                                                                : fixed_size(array.type);
    if (array.count > left() / each)
      return fail_at(start, "metadata key '" + key_ + "' has an array of " + std::to_string(array.count) +
                                " elements, which does not fit the file");
    const std::uint64_t begin = at_;
    if (array.type == gguf_type::string) {
      std::string_view text;
      for (std::uint64_t i = 0; i < array.count; ++i)
        if (!take_string(text, std::numeric_limits<std::uint64_t>::max(), "metadata key '" + key_ + "'")) return false;
    } else if (array.type == gguf_type::array) {
      gguf_array inner;
      for (std::uint64_t i = 0; i < array.count; ++i)
        if (!take_array(inner, depth + 1)) return false;
    } else {
      at_ += array.count * each;
    }
    array.bytes = bytes_.subspan(begin, at_ - begin);
    return true;
  }

  bool read_alignment() {
    auto value = out_.unsigned_value("general.alignment");
    if (!value) {
      failure_ = std::move(value).error();
      return false;
    }
    if (!*value) return true;
    alignment_ = **value;
    if (alignment_ == 0 || alignment_ > max_alignment || (alignment_ & (alignment_ - 1)) != 0)
      return fail_at(0, "metadata key 'general.alignment' is " + std::to_string(alignment_) +
                            "; a power of two up to " + std::to_string(max_alignment) + " is needed");
    return true;
  }

  bool read_tensors() {
    for (std::uint64_t i = 0; i < tensor_count_; ++i) {
      described_tensor described;
      const std::uint64_t start = at_;
      std::string_view name;
      if (!take_string(name, max_tensor_name_bytes, "a tensor name")) return false;
      if (name.empty() || valid_utf8_prefix(name) != name.size())
        return fail_at(start, "a tensor name is empty or not valid UTF-8");
      described.name = name;
      if (!take_shape_and_type(described, start)) return false;
      described_.push_back(std::move(described));
    }
    return true;
  }

  bool take_shape_and_type(described_tensor& described, std::uint64_t start) {
    const std::string what = "tensor '" + described.name + "'";
    stored_tensor& tensor = described.tensor;
    tensor.file = out_.name_;
    std::uint32_t dimensions = 0;
    if (!take(dimensions, what)) return false;
    if (dimensions > max_dimensions)
      return fail_at(start, what + " has " + std::to_string(dimensions) + " dimensions; at most " +
                                std::to_string(max_dimensions) + " are allowed");
    std::uint64_t count = 1;
    for (std::uint32_t d = 0; d < dimensions; ++d) {
      std::uint64_t size = 0;
      if (!take(size, what)) return false;
      if (size == 0) return fail_at(start, what + " has a dimension of 0");
      if (size > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) ||
          __builtin_mul_overflow(count, size, &count))
        return fail_at(start, what + ": the product of its dimensions overflows");
      tensor.shape.insert(tensor.shape.begin(), size);  // GGUF lists the innermost dimension first
    }
    std::uint32_t number = 0;
    if (!take(number, what) || !take(described.offset, what)) return false;
    const ggml_type* type = find_ggml_type(number);
    if (type == nullptr) return fail_at(start, what + " has unknown type " + std::to_string(number));
    tensor.type_name = type->name;
    const auto known = dtype_from_name(type->name);
    tensor.readable = known.has_value();
    if (known) tensor.type = *known;
    const std::uint64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
    if (row % type->block_size != 0)
      return fail_at(start, what + ": rows of " + std::to_string(row) + " values are no multiple of the " +
                                tensor.type_name + " block of " + std::to_string(type->block_size));
    if (__builtin_mul_overflow(count / type->block_size, std::uint64_t{type->block_bytes}, &described.size))
      return fail_at(start, what + ": its size overflows");
    if (described.offset % alignment_ != 0)
      return fail_at(start, what + ": offset " + std::to_string(described.offset) + " is not aligned to " +
                                std::to_string(alignment_));
    return true;
  }

  bool place_tensors() {
    const std::uint64_t data_at = (at_ + alignment_ - 1) / alignment_ * alignment_;
    out_.header_ = bytes_.first(at_);
    const std::uint64_t room = data_at < bytes_.size() ? bytes_.size() - data_at : 0;
    std::vector<claimed_range> ranges;
    for (auto& described : described_) {
      const std::string what = "tensor '" + described.name + "'";
      if (described.offset > room || described.size > room - described.offset)
        return fail_at(at_, what + ": offset " + std::to_string(described.offset) + " and size " +
                                std::to_string(described.size) + " lie past the end of the data, which has " +
                                std::to_string(room) + " bytes: is the file truncated?");
      described.tensor.bytes = bytes_.subspan(data_at + described.offset, described.size);
      const auto [place, fresh] = out_.tensors_.emplace(described.name, std::move(described.tensor));
      if (!fresh) return fail_at(at_, what + " appears twice");
      out_.tensor_order_.push_back(described.name);
      ranges.push_back({described.offset, described.offset + described.size, place->first});
    }
    if (const auto* twice = find_overlap(ranges))
      return fail_at(at_, "tensor '" + std::string(twice->owner) + "': its offset overlaps another tensor");
    return true;
  }

  std::span<const std::byte> bytes_;
  std::uint64_t at_ = 0;
  std::uint64_t tensor_count_ = 0;
  std::uint64_t key_count_ = 0;
  std::uint64_t alignment_ = 32;
  std::string key_;  ///< Of the value being read.
  std::vector<described_tensor> described_;
  gguf_file out_;
  error failure_;
};

result<gguf_file> gguf_file::read(const mapped_file& file) { return gguf_reader(file).read(); }

}  // namespace troupe::model
