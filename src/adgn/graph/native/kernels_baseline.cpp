// The instructions that every processor of the architecture has: SSE2, NEON.
#define ADGN_ISA baseline
#define ADGN_VECTOR_BYTES 16
#define ADGN_BLOCK_VECTORS 2

#include "kernels_impl.hpp"
