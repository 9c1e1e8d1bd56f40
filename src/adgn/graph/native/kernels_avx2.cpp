// Eight floats at once, with fused multiplication and addition.
#include "target.hpp"
#if ADGN_X86
ADGN_TARGET("avx2,fma")
#define ADGN_ISA avx2
#define ADGN_VECTOR_BYTES 32
#define ADGN_BLOCK_VECTORS 2

#include "kernels_impl.hpp"
ADGN_TARGET_END
#endif
