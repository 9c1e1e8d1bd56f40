// Vectors of the width that the translation unit is compiled for (see kernels_*.cpp).
//
// They are the vector types that GCC and Clang share, so that the same few lines serve SSE2, AVX2,
// AVX-512 and NEON, and + - * / act lane by lane.
#pragma once

#include <cstdint>
#include <cstring>

#define ADGN_INLINE static inline __attribute__((always_inline))

namespace adgn {
namespace ADGN_ISA {

template <class T>
struct Simd;

template <>
struct Simd<float> {
    typedef float Vector __attribute__((vector_size(ADGN_VECTOR_BYTES)));
    typedef std::uint32_t Bits __attribute__((vector_size(ADGN_VECTOR_BYTES)));
    typedef std::uint8_t Bytes __attribute__((vector_size(ADGN_VECTOR_BYTES / sizeof(float))));
};

template <>
struct Simd<double> {
    typedef double Vector __attribute__((vector_size(ADGN_VECTOR_BYTES)));
    typedef std::uint64_t Bits __attribute__((vector_size(ADGN_VECTOR_BYTES)));
    typedef std::uint8_t Bytes __attribute__((vector_size(ADGN_VECTOR_BYTES / sizeof(double))));
};

template <class T>
using Vector = typename Simd<T>::Vector;
template <class T>
using Bits = typename Simd<T>::Bits;
template <class T>
using Bytes = typename Simd<T>::Bytes;  // one for each lane

template <class T>
constexpr int lanes = ADGN_VECTOR_BYTES / sizeof(T);

template <class T>
ADGN_INLINE Vector<T> load(const T* from) {
    Vector<T> v;
    std::memcpy(&v, from, sizeof v);  // unaligned: torch promises no more than the element's own
    return v;
}

template <class T>
ADGN_INLINE void store(T* to, Vector<T> v) {
    std::memcpy(to, &v, sizeof v);
}

template <class T>
ADGN_INLINE Vector<T> splat(T value) {
    return value - Vector<T>{};  // `- 0`, as `+ 0` would turn -0 into 0
}

template <class T>
ADGN_INLINE Bits<T> bits_of(Vector<T> v) {
    return reinterpret_cast<Bits<T>>(v);
}

template <class T>
ADGN_INLINE Vector<T> from_bits(Bits<T> b) {
    return reinterpret_cast<Vector<T>>(b);
}

// 0, 1, 2 … in the lanes, to compare with the number of a lane.
template <class T>
ADGN_INLINE Bits<T> lane_numbers() {
    Bits<T> numbers;
    for (int i = 0; i < lanes<T>; ++i) numbers[i] = unsigned(i);
    return numbers;
}

// The lanes before number `end`, or from number `begin` on; the others are zero.
template <class T>
ADGN_INLINE Vector<T> to_lane(std::int64_t end, Vector<T> v) {
    return lane_numbers<T>() < Bits<T>{} + std::uint32_t(end) ? v : Vector<T>{};
}
template <class T>
ADGN_INLINE Vector<T> from_lane(std::int64_t begin, Vector<T> v) {
    return lane_numbers<T>() < Bits<T>{} + std::uint32_t(begin) ? Vector<T>{} : v;
}

// 1 for each lane above zero, else 0 (also for a NaN).
template <class T>
ADGN_INLINE void store_positive(std::uint8_t* to, Vector<T> v) {
    const Bits<T> ones = reinterpret_cast<Bits<T>>(v > Vector<T>{}) & 1;
    const Bytes<T> bytes = __builtin_convertvector(ones, Bytes<T>);
    std::memcpy(to, &bytes, sizeof bytes);
}

// The lanes whose byte is not 0; the others are zero.
template <class T>
ADGN_INLINE Vector<T> where(const std::uint8_t* chosen, Vector<T> v) {
    Bytes<T> bytes;
    std::memcpy(&bytes, chosen, sizeof bytes);
    return __builtin_convertvector(bytes, Bits<T>) != 0 ? v : Vector<T>{};
}

}  // namespace ADGN_ISA
}  // namespace adgn
