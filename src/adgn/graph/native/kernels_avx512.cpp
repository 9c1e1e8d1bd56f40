// Sixteen floats at once, and twice as many registers.
#include "target.hpp"
#if ADGN_X86
ADGN_TARGET("avx512f,avx512dq,avx512vl,avx512bw,avx2,fma")
#define ADGN_ISA avx512
#define ADGN_VECTOR_BYTES 64
#define ADGN_BLOCK_VECTORS 4

#include "kernels_impl.hpp"
ADGN_TARGET_END
#endif
