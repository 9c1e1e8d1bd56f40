// Neighbour sums: rows of a sparse matrix times a dense one.
#pragma once

#include "kernels.hpp"
#include "simd.hpp"

namespace adgn {
namespace ADGN_ISA {

// So many entries ahead a row is fetched into the cache: about a memory latency's worth of work.
constexpr Index prefetch_distance = 12;

template <class T>
ADGN_INLINE void prefetch_row(const T* row, Index width) {
    for (Index j = 0; j < width; j += 64 / Index(sizeof(T))) __builtin_prefetch(row + j);
}

// out[0 … groups vectors] = sum over the slots first … last - 1 of value x[col].
// Two sums per vector, over even and odd slots, halve the wait for the previous addition.
template <class T, int groups>
ADGN_INLINE void gather_row(const Matrix<T>& matrix, Index first, Index last, Index ahead_end,
                            Rows<const T> x, Index width, Index offset, T* out) {
    using V = Vector<T>;
    V even[groups] = {}, odd[groups] = {};
    const T* base = x.data + offset;
    Index slot = first;
    for (; slot + 1 < last; slot += 2) {
        if (slot + prefetch_distance + 1 < ahead_end) {
            for (Index s = slot + prefetch_distance; s < slot + prefetch_distance + 2; ++s)
                prefetch_row(base + (matrix.col[s] - x.origin) * width, groups * lanes<T>);
        }
        const T* a = base + (matrix.col[slot] - x.origin) * width;
        const T* b = base + (matrix.col[slot + 1] - x.origin) * width;
        const V weight_a = splat<T>(matrix.value[slot]);
        const V weight_b = splat<T>(matrix.value[slot + 1]);
#pragma GCC unroll 8
        for (int j = 0; j < groups; ++j) {
            even[j] += weight_a * load<T>(a + j * lanes<T>);
            odd[j] += weight_b * load<T>(b + j * lanes<T>);
        }
    }
    if (slot < last) {
        const T* a = base + (matrix.col[slot] - x.origin) * width;
        const V weight = splat<T>(matrix.value[slot]);
#pragma GCC unroll 8
        for (int j = 0; j < groups; ++j) even[j] += weight * load<T>(a + j * lanes<T>);
    }
#pragma GCC unroll 8
    for (int j = 0; j < groups; ++j) store<T>(out + j * lanes<T>, even[j] + odd[j]);
}

// out[i - begin] = (A x)[i]; `width` is a multiple of 64 bytes.
template <class T>
ADGN_INLINE void gather_rows(const Matrix<T>& matrix, Index begin, Index end, Rows<const T> x,
                             Index width, T* out) {
    const Index vectors = width / lanes<T>;
    const Index ahead_end = matrix.rowptr[end];
    for (Index i = begin; i < end; ++i, out += width) {
        const Index first = matrix.rowptr[i], last = matrix.rowptr[i + 1];
        Index j = 0;
        for (; j + 4 <= vectors; j += 4)
            gather_row<T, 4>(matrix, first, last, ahead_end, x, width, j * lanes<T>,
                             out + j * lanes<T>);
        for (; j + 2 <= vectors; j += 2)
            gather_row<T, 2>(matrix, first, last, ahead_end, x, width, j * lanes<T>,
                             out + j * lanes<T>);
        if (j < vectors)
            gather_row<T, 1>(matrix, first, last, ahead_end, x, width, j * lanes<T>,
                             out + j * lanes<T>);
    }
}

// The same for rows of any width.
template <class T>
void product(const Matrix<T>& matrix, Index begin, Index end, Index channels, const T* x, T* out) {
    if (channels * sizeof(T) % 64 == 0) {
        gather_rows<T>(matrix, begin, end, {x, 0}, channels, out + begin * channels);
        return;
    }
    for (Index i = begin; i < end; ++i) {
        T* to = out + i * channels;
        for (Index j = 0; j < channels; ++j) to[j] = T(0);
        for (Index slot = matrix.rowptr[i]; slot < matrix.rowptr[i + 1]; ++slot) {
            const T weight = matrix.value[slot];
            const T* from = x + Index(matrix.col[slot]) * channels;
            for (Index j = 0; j < channels; ++j) to[j] += weight * from[j];
        }
    }
}

}  // namespace ADGN_ISA
}  // namespace adgn
