#pragma once

#include <array>
#include <cstdint>

namespace troupe::model {

/// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): 128 random bits as a pure
/// function of a counter and a key, so that any draw can be repeated without replaying those before it.
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

/// Uniform in [0, 1) with 53 bits, for the `position`th token of choice `choice` under `seed`.
double uniform_draw(std::uint64_t seed, std::uint32_t choice, std::uint64_t position);

}  // namespace troupe::model
