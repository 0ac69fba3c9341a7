#include "cache/request_key.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <cmath>
#include <vector>

#include "base/hex.hpp"

namespace troupe::cache {
namespace {

namespace json = boost::json;

void write(const json::value& value, std::string& out) {
  if (const auto* object = value.if_object()) {
    std::vector<const json::key_value_pair*> members;
    for (const auto& member : *object) members.push_back(&member);
    std::sort(members.begin(), members.end(), [](const auto* a, const auto* b) { return a->key() < b->key(); });
    out += '{';
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (i != 0) out += ',';
      out += json::serialize(json::value(members[i]->key()));
      out += ':';
      write(members[i]->value(), out);
    }
    out += '}';
  } else if (const auto* list = value.if_array()) {
    out += '[';
    for (std::size_t i = 0; i < list->size(); ++i) {
      if (i != 0) out += ',';
      write((*list)[i], out);
    }
    out += ']';
  } else if (const auto* number = value.if_double();
             number != nullptr && std::trunc(*number) == *number && std::abs(*number) < 9e15) {
    out += std::to_string(static_cast<std::int64_t>(*number));
  } else {
    out += json::serialize(value);
  }
}

}  // namespace

std::string canonical(const json::value& value) {
  std::string out;
  write(value, out);
  return out;
}

std::string request_key(const json::value& request) {
  const std::string text = canonical(request);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int length = 0;
  EVP_Digest(text.data(), text.size(), digest.data(), &length, EVP_sha256(), nullptr);
  return to_hex({reinterpret_cast<const char*>(digest.data()), length});
}

}  // namespace troupe::cache
