#include "cpu/isa.hpp"

#include <array>
#include <cstdlib>
#include <utility>

namespace troupe::cpu {
namespace {

constexpr std::array<std::pair<isa, std::string_view>, 3> names{
    {{isa::scalar, "scalar"}, {isa::avx2, "avx2"}, {isa::avx512, "avx512"}}};

}  // namespace

std::string_view to_string(isa tier) { return names[static_cast<std::size_t>(tier)].second; }

result<isa> isa_from_name(std::string_view name) {
  for (const auto& [tier, known] : names) {
    if (known == name) return tier;
  }
  return error{error_kind::invalid, "unknown instruction set '" + std::string(name) + "'; use scalar, avx2 or avx512",
               "TROUPE_ISA"};
}

bool supported(isa tier) {
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  switch (tier) {
    case isa::scalar:
      return true;
    case isa::avx2:
      return avx2;
    case isa::avx512:
      return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512vnni");
  }
  return false;
#else
  return tier == isa::scalar;
#endif
}

isa best_isa() {
  if (supported(isa::avx512)) return isa::avx512;
  return supported(isa::avx2) ? isa::avx2 : isa::scalar;
}

result<isa> choose_isa(std::optional<isa> wanted) {
  if (!wanted) {
    const char* name = std::getenv("TROUPE_ISA");
    if (!name || !*name) return best_isa();
    auto named = isa_from_name(name);
    if (!named) return named;
    wanted = *named;
  }
  if (!supported(*wanted)) {
    return error{error_kind::unsupported,
                 "this machine has no " + std::string(to_string(*wanted)) + "; the best it has is " +
                     std::string(to_string(best_isa())),
                 "instruction set"};
  }
  return *wanted;
}

}  // namespace troupe::cpu
