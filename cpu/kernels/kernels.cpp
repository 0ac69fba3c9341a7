#include "cpu/kernels/kernels.hpp"

namespace troupe::cpu {

extern const kernels scalar_kernels;
extern const kernels avx2_kernels;
extern const kernels avx512_kernels;

const kernels& kernels_of(isa tier) {
#if defined(__x86_64__)
  switch (tier) {
    case isa::scalar:
      return scalar_kernels;
    case isa::avx2:
      return avx2_kernels;
    case isa::avx512:
      return avx512_kernels;
  }
#endif
  return scalar_kernels;
}

}  // namespace troupe::cpu
