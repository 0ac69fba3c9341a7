#include "base/result.hpp"

namespace troupe {

std::string_view to_string(error_kind kind) {
  switch (kind) {
    case error_kind::invalid: return "invalid";
    case error_kind::not_found: return "not_found";
    case error_kind::corrupt: return "corrupt";
    case error_kind::unsupported: return "unsupported";
    case error_kind::io: return "io";
    case error_kind::too_large: return "too_large";
    case error_kind::overloaded: return "overloaded";
    case error_kind::unavailable: return "unavailable";
    case error_kind::deadline_exceeded: return "deadline_exceeded";
    case error_kind::cancelled: return "cancelled";
    case error_kind::internal: return "internal";
  }
  return "internal";
}

std::string error::to_string() const { return place.empty() ? message : place + ": " + message; }

}  // namespace troupe
