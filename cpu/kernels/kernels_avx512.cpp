#include "cpu/kernels/simd_avx512.hpp"
#include "cpu/kernels/table.hpp"

namespace troupe::cpu {

extern const kernels avx512_kernels;
const kernels avx512_kernels = make_kernels<avx512_simd>(isa::avx512);

}  // namespace troupe::cpu
