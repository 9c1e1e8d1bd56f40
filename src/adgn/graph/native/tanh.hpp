// A vectorised tanh.
#pragma once

#include "simd.hpp"

namespace adgn {
namespace ADGN_ISA {

// What exp needs to know of a floating-point type. The shifter is 1.5 * 2^(mantissa bits): adding
// it rounds to an integer, which then stands in the lowest bits.
template <class T>
struct ExpConstants;

template <>
struct ExpConstants<float> {
    static constexpr float shifter = 12582912.0f, log2e = 1.44269504f;
    static constexpr float ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
    static constexpr float least_exponent = -87.3f;  // exp of it is just above the least normal number
    static constexpr float saturated = 10.0f;  // 1 - tanh(10) = 4e-9, less than half an ulp of 1
    static constexpr int mantissa_bits = 23, exponent_bias = 127, terms = 7;
};

template <>
struct ExpConstants<double> {
    static constexpr double shifter = 6755399441055744.0, log2e = 1.4426950408889634;
    static constexpr double ln2_high = 6.93147180369123816490e-01;
    static constexpr double ln2_low = 1.90821492927058770002e-10;
    static constexpr double least_exponent = -708.39;
    static constexpr double saturated = 20.0;  // 1 - tanh(20) = 8e-18
    static constexpr int mantissa_bits = 52, exponent_bias = 1023, terms = 13;
};

// tanh(x) = e / (e + 2) with e = exp(2|x|) - 1, which loses nothing near zero.
//
// 2|x| = n ln 2 + r with |r| <= ln(2) / 2; exp(r) - 1 is its Taylor polynomial (its remainder is
// below half an ulp), and e = 2^n (exp(r) - 1) + (2^n - 1). A NaN goes through r to the result.
template <class T>
ADGN_INLINE Vector<T> tanh(Vector<T> x) {
    using C = ExpConstants<T>;
    using V = Vector<T>;
    const Bits<T> sign_bit = bits_of<T>(splat<T>(T(-0.0)));
    const Bits<T> sign = bits_of<T>(x) & sign_bit;
    V size = from_bits<T>(bits_of<T>(x) & ~sign_bit);
    const V limit = splat<T>(C::saturated);
    size = size > limit ? limit : size;  // false for a NaN, which stays
    const V z = size + size;

    const V shifted = z * splat<T>(C::log2e) + splat<T>(C::shifter);
    const V n = shifted - splat<T>(C::shifter);
    V r = z - n * splat<T>(C::ln2_high);
    r = r - n * splat<T>(C::ln2_low);

    T factorial = T(1);
    for (int k = 2; k <= C::terms; ++k) factorial *= T(k);
    V sum = splat<T>(T(1) / factorial);
#pragma GCC unroll 16
    for (int k = C::terms; k > 2; --k) {
        factorial /= T(k);
        sum = sum * r + splat<T>(T(1) / factorial);
    }
    const V small = r * r * sum + r;

    const Bits<T> exponent = (bits_of<T>(shifted) + C::exponent_bias) << C::mantissa_bits;
    const V power = from_bits<T>(exponent);
    const V e = power * small + (power - splat<T>(T(1)));
    const V result = e / (e + splat<T>(T(2)));
    return from_bits<T>(bits_of<T>(result) | sign);
}

}  // namespace ADGN_ISA
}  // namespace adgn
