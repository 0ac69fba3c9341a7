#include "cpu/kernels/simd_scalar.hpp"
#include "cpu/kernels/table.hpp"

namespace troupe::cpu {

extern const kernels scalar_kernels;
const kernels scalar_kernels = make_kernels<scalar_simd>(isa::scalar);

}  // namespace troupe::cpu
