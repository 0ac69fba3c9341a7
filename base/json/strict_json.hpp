#pragma once

#include <boost/json/value.hpp>
#include <cstddef>
#include <string_view>

#include "base/result.hpp"

namespace troupe {

/// Parses one JSON text (RFC 8259) and refuses what lax parsers let pass: duplicate keys, invalid UTF-8, lone
/// surrogates, numbers beyond a double, more than `max_depth` levels, anything after the value. An error's place is the
/// field where it happened ("messages[0].content"); its message holds the byte offset. For a client's text and a
/// model's files alike. `max_members`: most members of any one object.
result<boost::json::value> parse_json(std::string_view text, std::size_t max_depth, std::size_t max_members = 4096);

}  // namespace troupe
