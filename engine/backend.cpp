#include "engine/backend.hpp"

namespace troupe::engine {

std::string_view to_string(precision p) {
  switch (p) {
    case precision::fp32:
      return "fp32";
    case precision::bf16:
      return "bf16";
    case precision::int8:
      return "int8";
    case precision::int4:
      return "int4";
  }
  return "unknown";
}

}  // namespace troupe::engine
