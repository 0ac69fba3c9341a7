#include "cpu/kernels/simd_avx2.hpp"
#include "cpu/kernels/table.hpp"

namespace troupe::cpu {

extern const kernels avx2_kernels;
const kernels avx2_kernels = make_kernels<avx2_simd>(isa::avx2);

}  // namespace troupe::cpu
