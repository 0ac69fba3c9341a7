#pragma once

#include <string>
#include <string_view>

#include <boost/json/fwd.hpp>

namespace troupe::cache {

/// Canonical JSON text of a value: members sorted by key, no white space, numbers in one spelling (1.0 as 1). Equal
/// values give equal texts, however a client wrote them.
std::string canonical(const boost::json::value& value);

/// The cache key of a request: SHA-256 of its canonical text, as lower-case hex. Whoever builds the value puts in
/// everything that determines the answer, and nothing else.
std::string request_key(const boost::json::value& request);

}  // namespace troupe::cache
