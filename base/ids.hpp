#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

/// Names for the integers that travel through Troupe, so that a page index is never taken for a sequence id.
namespace troupe {

/// An index into the vocabulary. Plain, because arrays of it go to the tokenizer, the backend and JSON unchanged.
using token_id = std::int32_t;

/// A 64-bit number with a type of its own. `Tag` is any (incomplete) type.
template <class Tag>
struct strong_id {
  std::uint64_t value = 0;
  auto operator<=>(const strong_id&) const = default;
};

using request_id = strong_id<struct request_id_tag>;    ///< One client request; unique in this process.
using sequence_id = strong_id<struct sequence_id_tag>;  ///< One choice of one prompt: what the engine schedules.

/// A KV page: an index into the backend's page pool.
enum class page_index : std::uint32_t {};

/// One expert of one layer.
struct expert_id {
  std::uint16_t layer = 0;
  std::uint16_t index = 0;
  auto operator<=>(const expert_id&) const = default;
};

}  // namespace troupe

template <class Tag>
struct std::hash<troupe::strong_id<Tag>> {
  std::size_t operator()(troupe::strong_id<Tag> id) const noexcept { return std::hash<std::uint64_t>{}(id.value); }
};

template <>
struct std::hash<troupe::expert_id> {
  std::size_t operator()(troupe::expert_id id) const noexcept {
    return std::hash<std::uint32_t>{}(std::uint32_t{id.layer} << 16 | id.index);
  }
};
