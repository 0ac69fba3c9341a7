#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "model/tokenizer/tokenizer.hpp"

/// Reads tests/data/tokenizers, whose format tools/make_golden_tokenizers.py describes.
namespace troupe::model::golden {

inline std::filesystem::path folder() { return std::filesystem::path(TROUPE_TEST_DATA) / "tokenizers"; }

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline std::vector<std::string> read_lines(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::vector<std::string> out;
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

class reader {
 public:
  explicit reader(std::string bytes) : bytes_(std::move(bytes)) {}
  std::uint64_t varint() {
    std::uint64_t out = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes_.at(at_++));
      out |= std::uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return out;
    }
  }
  std::uint64_t hash() {
    std::uint64_t out = 0;
    for (unsigned i = 0; i < 8; ++i) out |= std::uint64_t{static_cast<unsigned char>(bytes_.at(at_++))} << 8 * i;
    return out;
  }
  std::string text() {
    const auto size = varint();
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }
  std::vector<token_id> ids() { return ids(varint()); }
  std::vector<token_id> ids(std::uint64_t count) {
    std::vector<token_id> out(count);
    for (auto& id : out) id = static_cast<token_id>(varint());
    return out;
  }
  bool done() const { return at_ == bytes_.size(); }

 private:
  std::string bytes_;
  std::size_t at_ = 0;
};

template <class Numbers>
std::uint64_t hash_of(const Numbers& numbers) {
  std::uint64_t out = 0, power = 1;
  for (const auto n : numbers) {
    out += (static_cast<std::make_unsigned_t<std::remove_cvref_t<decltype(n)>>>(n) + std::uint64_t{1}) * power;
    power *= 0x9E3779B97F4A7C15ULL;
  }
  return out;
}

inline std::vector<std::string> strings() {
  reader in(read_file(folder() / "strings.bin"));
  std::vector<std::string> out(in.varint());
  for (auto& text : out) text = in.text();
  return out;
}

/// A decoded text: the string itself, the same as `other`, or one with that hash.
struct expected_text {
  std::uint64_t kind = 0, hash = 0;
  bool matches(std::string_view text, std::string_view input, std::string_view other) const {
    return kind == 0 ? text == input : kind == 1 ? text == other : hash_of(text) == hash;
  }
};

struct expected {
  std::uint64_t count = 0, hash = 0;
  std::vector<token_id> ids;  ///< Of a sample; empty for the others.
  expected_text plain, skipped;
};

struct suite {
  std::vector<token_id> before, after;
  std::vector<expected> cases;
};

inline suite read_suite(std::string_view name, std::size_t strings) {
  reader in(read_file(folder() / name / "golden.bin"));
  suite out;
  out.before = in.ids();
  out.after = in.ids();
  out.cases.resize(strings);
  const auto text = [&] {
    expected_text t{in.varint(), 0};
    if (t.kind == 2) t.hash = in.hash();
    return t;
  };
  for (auto& c : out.cases) {
    c.count = in.varint();
    c.hash = in.hash();
    if (in.varint() == 1) c.ids = in.ids(c.count);
    c.plain = text();
    c.skipped = text();
  }
  if (!in.done()) throw std::runtime_error("golden.bin has bytes left over");
  return out;
}

/// The default model's tokenizer as its GGUF file holds it.
struct smollm2_vocabulary {
  std::vector<std::string> tokens = read_lines(folder() / "smollm2/tokens.txt");
  std::vector<std::string> merges = read_lines(folder() / "smollm2/merges.txt");

  /// Views into this.
  tokenizer::gguf_vocabulary gguf() const {
    tokenizer::gguf_vocabulary out;
    out.model = "gpt2";
    out.pre = "smollm";
    out.tokens.assign(tokens.begin(), tokens.end());
    out.merges.assign(merges.begin(), merges.end());
    out.types.assign(tokens.size(), 1);
    std::fill_n(out.types.begin(), 17, 3);
    out.bos = 1;
    out.eos = 2;
    out.unknown = 0;
    out.add_bos = out.add_space_prefix = false;
    return out;
  }
};

inline std::unique_ptr<const tokenizer> open(std::string_view name) {
  if (name == "smollm2") {
    const smollm2_vocabulary files;
    auto out = tokenizer::from_gguf(files.gguf(), "smollm2");
    if (!out) throw std::runtime_error(out.error().to_string());
    return *std::move(out);
  }
  auto out = tokenizer::from_json(read_file(folder() / name / "tokenizer.json"), "", name);
  if (!out) throw std::runtime_error(out.error().to_string());
  return *std::move(out);
}

}  // namespace troupe::model::golden
