#include "model/files/tensor_writer.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "model/files/new_file.hpp"
#include "model/files/read_guard.hpp"

namespace troupe::model {
namespace {

constexpr std::uint64_t gguf_alignment = 32;

template <class T>
void append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append_text(std::string& out, std::string_view text) {
  append<std::uint64_t>(out, text.size());
  out += text;
}

std::uint64_t total_size(const std::vector<tensor_to_write>& tensors) {
  std::uint64_t total = 0;
  for (const auto& tensor : tensors) total += tensor.size() + gguf_alignment;
  return total;
}

/// Whether the source could be read up to its end: the kernel's own copying from a file that was cut short fails
/// without a word to the guard, touching its last byte does not.
result<void> was_readable(std::span<const std::byte> bytes) {
  if (bytes.empty()) return {};
  const volatile std::byte* last = &bytes.back();
  (void)*last;
  return check_readable(bytes);
}

result<void> write_data(const std::vector<tensor_to_write>& tensors, std::uint64_t alignment, new_file& file,
                        const write_progress& progress) {
  const std::uint64_t total = file.size() + total_size(tensors);
  for (const auto& tensor : tensors) {
    file.pad_to(alignment);
    for (const auto& stretch : tensor.stretches) {
      file.write(stretch);
      if (auto read = was_readable(stretch); !read) return read;
      if (progress && !progress(file.size(), total))
        return error{error_kind::cancelled, "interrupted; nothing is kept of what was written", {}};
    }
  }
  file.pad_to(alignment);
  return {};
}

}  // namespace

std::uint64_t tensor_to_write::size() const {
  std::uint64_t bytes = 0;
  for (const auto& stretch : stretches) bytes += stretch.size();
  return bytes;
}

void gguf_writer::copy(const gguf_file::entry& entry) {
  metadata_.append(reinterpret_cast<const char*>(entry.raw.data()), entry.raw.size());
  ++entries_;
}

void gguf_writer::set(std::string_view key, std::uint32_t value) {
  append_text(metadata_, key);
  append(metadata_, static_cast<std::uint32_t>(gguf_type::u32));
  append(metadata_, value);
  ++entries_;
}

void gguf_writer::set(std::string_view key, std::string_view value) {
  append_text(metadata_, key);
  append(metadata_, static_cast<std::uint32_t>(gguf_type::string));
  append_text(metadata_, value);
  ++entries_;
}

result<void> gguf_writer::write(const std::filesystem::path& path, const write_progress& progress) const {
  std::string header = "GGUF";
  append<std::uint32_t>(header, 3);
  append<std::uint64_t>(header, tensors_.size());
  append<std::uint64_t>(header, entries_);
  header += metadata_;
  std::uint64_t offset = 0;
  for (const auto& tensor : tensors_) {
    const auto number = ggml_type_number(tensor.type);
    if (!number)
      return error{error_kind::unsupported, "GGUF has no type " + std::string(traits(tensor.type).name),
                   "tensor '" + tensor.name + "'"};
    append_text(header, tensor.name);
    append(header, static_cast<std::uint32_t>(tensor.shape.size()));
    for (auto dimension = tensor.shape.rbegin(); dimension != tensor.shape.rend(); ++dimension)
      append(header, *dimension);
    append(header, *number);
    append(header, offset);
    offset += (tensor.size() + gguf_alignment - 1) / gguf_alignment * gguf_alignment;
  }
  auto file = new_file::create(path, header.size() + total_size(tensors_));
  if (!file) return std::move(file).error();
  file->write(header);
  if (auto written = write_data(tensors_, gguf_alignment, *file, progress); !written) return written;
  return file->commit();
}

result<void> write_safetensors(const std::filesystem::path& path, const std::vector<tensor_to_write>& tensors,
                               const write_progress& progress) {
  boost::json::object entries;
  entries["__metadata__"] = {{"format", "pt"}};
  std::uint64_t offset = 0;
  for (const auto& tensor : tensors) {
    if (tensor.type > dtype::f8_e4m3)
      return error{error_kind::unsupported, "safetensors has no type " + std::string(traits(tensor.type).name),
                   "tensor '" + tensor.name + "'"};
    boost::json::array shape(tensor.shape.begin(), tensor.shape.end());
    entries[tensor.name] = {
        {"dtype", traits(tensor.type).name}, {"shape", shape}, {"data_offsets", {offset, offset + tensor.size()}}};
    offset += tensor.size();
  }
  std::string header = boost::json::serialize(entries);
  header.resize((header.size() + 7) / 8 * 8, ' ');
  auto file = new_file::create(path, header.size() + 8 + offset);
  if (!file) return std::move(file).error();
  std::string length;
  append<std::uint64_t>(length, header.size());
  file->write(length);
  file->write(header);
  if (auto written = write_data(tensors, 1, *file, progress); !written) return written;
  return file->commit();
}

}  // namespace troupe::model
