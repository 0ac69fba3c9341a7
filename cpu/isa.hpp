#pragma once

#include <string_view>

#include "base/result.hpp"
#include "cpu/cpu_backend.hpp"

/// Which instruction set the kernels use. Every tier gives the same bits, so the choice is about speed alone.
namespace troupe::cpu {

std::string_view to_string(isa tier);
result<isa> isa_from_name(std::string_view name);

/// Whether this machine and its operating system can run `tier`. avx2 asks for AVX2, FMA and F16C; avx512 for F, BW,
/// VL, DQ and VNNI on top. (The BF16 instructions round intermediate sums in their own way, so no tier uses them.)
bool supported(isa tier);
isa best_isa();

/// `wanted`, else TROUPE_ISA, else the best; an error where this machine lacks it or the name is unknown.
result<isa> choose_isa(std::optional<isa> wanted);

}  // namespace troupe::cpu
