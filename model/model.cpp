#include "model/model.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cassert>

#include "base/hex.hpp"
#include "model/model_parts.hpp"

namespace troupe::model {

digest_builder::digest_builder() : context_(EVP_MD_CTX_new()) { EVP_DigestInit_ex(context_, EVP_sha256(), nullptr); }
digest_builder::~digest_builder() { EVP_MD_CTX_free(context_); }

void digest_builder::add(std::string_view text) {
  const std::uint64_t length = text.size();
  EVP_DigestUpdate(context_, &length, sizeof length);
  EVP_DigestUpdate(context_, text.data(), text.size());
}

void digest_builder::add_samples(std::span<const std::byte> weights) {
  constexpr std::size_t samples = 64;
  constexpr std::size_t page = 4096;
  const std::size_t step = std::max(page, weights.size() / samples);
  for (std::size_t at = 0; at < weights.size(); at += step) {
    const auto sample = weights.subspan(at, std::min(page, weights.size() - at));
    add({reinterpret_cast<const char*>(sample.data()), sample.size()});
  }
}

std::string digest_builder::finish() {
  std::array<unsigned char, 32> raw{};
  EVP_DigestFinal_ex(context_, raw.data(), nullptr);
  return to_hex({reinterpret_cast<const char*>(raw.data()), raw.size()});
}

opened_model::opened_model(std::unique_ptr<parts> p) : parts_(std::move(p)) {}
opened_model::~opened_model() = default;

result<void> opened_model::check_path(const std::filesystem::path& path) {
  constexpr std::string_view advice = "; give a Hugging Face model's folder with its config.json, or a .gguf file";
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    return error{error_kind::not_found, "there is no such model" + std::string(advice), path.string()};
  if (std::filesystem::is_directory(path, ignored) && !std::filesystem::exists(path / "config.json", ignored))
    return error{error_kind::not_found, "this folder has no config.json" + std::string(advice), path.string()};
  return {};
}

result<std::shared_ptr<const opened_model>> opened_model::open(const std::filesystem::path& path,
                                                               const std::filesystem::path& chat_template_file) {
  if (auto there = check_path(path); !there) return std::move(there).error();
  auto filled = std::make_unique<parts>();
  if (!chat_template_file.empty()) {
    auto source = read_text(chat_template_file);
    if (!source) return std::move(source).error();
    auto parsed = chat_template::parse(*source, chat_template_file.string());
    if (!parsed) return std::move(parsed).error();
    filled->chat = *std::move(parsed);
  }
  std::error_code ignored;
  const bool folder = std::filesystem::is_directory(path, ignored);
  auto opened = folder ? parts::open_folder(path, *filled) : parts::open_gguf(path, *filled);
  for (const auto& file : filled->files)
    if (auto read = check_readable(file.bytes()); !read)
      return error{read.error().kind, read.error().message, file.name()};
  if (!opened) return std::move(opened).error();
  if (auto sound = filled->weights->check_all(); !sound) {
    error failure = std::move(sound).error();
    if (failure.place.empty()) failure.place = path.string();
    return failure;
  }
  if (filled->text->vocab_size() > filled->spec.vocab)
    return error{error_kind::corrupt,
                 "the tokenizer has ids up to " + std::to_string(filled->text->vocab_size()) +
                     ", but the model's vocabulary (vocab_size) ends at " + std::to_string(filled->spec.vocab),
                 path.string()};
  return std::shared_ptr<const opened_model>(new opened_model(std::move(filled)));
}

const std::string& opened_model::name() const { return parts_->name; }
const std::string& opened_model::digest() const { return parts_->digest; }
const model_spec& opened_model::spec() const { return parts_->spec; }
const generation_defaults& opened_model::defaults() const { return parts_->defaults; }
const tokenizer& opened_model::text() const { return *parts_->text; }
const chat_template* opened_model::chat() const { return parts_->chat.get(); }

matrix_view opened_model::weight(tensor_role role, std::uint32_t layer, std::uint32_t expert) const {
  auto found = parts_->weights->find(role, layer, expert);
  assert(found && "the spec has no such weight");
  return found ? *std::move(found) : matrix_view{};
}

std::uint64_t opened_model::file_bytes() const {
  std::uint64_t total = 0;
  for (const auto& file : parts_->files) total += file.bytes().size();
  return total;
}

}  // namespace troupe::model
