// How a translation unit is compiled for more than the baseline instructions.
//
// Only this package's own kernels may follow ADGN_TARGET: an inline function of the standard
// library compiled there could be the copy that the linker keeps for everybody.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if (defined(__x86_64__) || defined(_M_X64)) && defined(__GNUC__)
#define ADGN_X86 1
#else
#define ADGN_X86 0
#endif

#define ADGN_PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define ADGN_TARGET(isa) \
    ADGN_PRAGMA(clang attribute push(__attribute__((target(isa))), apply_to = function))
#define ADGN_TARGET_END ADGN_PRAGMA(clang attribute pop)
#else
#define ADGN_TARGET(isa) ADGN_PRAGMA(GCC target(isa))
#define ADGN_TARGET_END
#endif
