#include "net/request_id.hpp"

#include <algorithm>
#include <cstdint>
#include <random>

namespace troupe::net {
namespace {

constexpr std::size_t max_bytes = 128;

std::string fresh() {
  thread_local std::mt19937_64 source{(std::uint64_t{std::random_device{}()} << 32) ^ std::random_device{}()};
  static constexpr std::string_view digits = "0123456789abcdef";
  std::string id;
  for (int word = 0; word < 2; ++word) {
    std::uint64_t bits = source();
    for (int i = 0; i < 16; ++i, bits >>= 4) id += digits[bits & 15];
  }
  return id;
}

}  // namespace

bool is_request_id(std::string_view text) {
  return !text.empty() && text.size() <= max_bytes &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

std::string request_id_or_fresh(std::string_view given) { return is_request_id(given) ? std::string(given) : fresh(); }

}  // namespace troupe::net
