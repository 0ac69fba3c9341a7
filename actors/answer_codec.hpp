#pragma once

#include <string>
#include <vector>

#include "actors/service.hpp"
#include "base/result.hpp"

namespace troupe::actors {

/// A complete answer as the result cache keeps it: its events as JSON text, token bytes in hex.
std::string encode_answer(const std::vector<generation_event>& events);
/// Nothing usable in a cache is trusted: an answer that does not parse is an error, and counts as a miss.
result<std::vector<generation_event>> decode_answer(const std::string& text);

/// The normalised request: all that determines the answer, for the cache's key.
boost::json::value normalized_request(const generation_request& request, const std::string& model_digest,
                                      const std::string& precision);

}  // namespace troupe::actors
