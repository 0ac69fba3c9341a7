#pragma once

#include <boost/json/value.hpp>
#include <cstddef>
#include <string_view>

#include "base/result.hpp"

namespace troupe::net {

/// Most members of one JSON object from a client.
inline constexpr std::size_t max_object_members = 4096;

/// Parses one JSON text (RFC 8259) and refuses what lax parsers let pass: duplicate keys, invalid UTF-8, lone surrogates,
/// numbers beyond a double, more than `max_depth` levels, anything after the value. An error's place is the field where it
/// happened ("messages[0].content"); its message holds the byte offset.
result<boost::json::value> parse_json(std::string_view text, std::size_t max_depth);

}  // namespace troupe::net
