// Neighbour sums: rows of a sparse matrix times a dense one.
#pragma once

#include "kernels.hpp"
#include "simd.hpp"

namespace adgn {
namespace ADGN_ISA {

// So many entries ahead a row is fetched into the cache: about a memory latency's worth of work.
constexpr Index prefetch_distance = 12;

// Where vector j of `groups` begins: one after the other, the last one `tail` from the first.
template <class T, int groups>
ADGN_INLINE Index place(int j, Index tail) {
    return j + 1 < groups ? j * lanes<T> : tail;
}

// One prefetch per line of the cache; their number is known when this is compiled.
template <class T, int groups>
ADGN_INLINE void prefetch_vectors(const T* row, Index tail) {
    constexpr int step = 64 / ADGN_VECTOR_BYTES;
#pragma GCC unroll 8
    for (int j = 0; j < groups; j += step) __builtin_prefetch(row + place<T, groups>(j, tail));
}

// `groups` vectors of out = sum over the slots first … last - 1 of value x[col].
// Two sums per vector, over even and odd slots, halve the wait for the previous addition.
template <class T, int groups>
ADGN_INLINE void gather_row(const Matrix<T>& matrix, Index first, Index last, Index ahead_end,
                            Rows<const T> x, Index step, Index offset, Index tail, T* out) {
    using V = Vector<T>;
    V even[groups] = {}, odd[groups] = {};
    const T* base = x.data + offset;
    Index slot = first;
    for (; slot + 1 < last; slot += 2) {
        if (slot + prefetch_distance + 1 < ahead_end) {
            const std::int32_t* ahead = matrix.col + slot + prefetch_distance;
            prefetch_vectors<T, groups>(base + (ahead[0] - x.origin) * step, tail);
            prefetch_vectors<T, groups>(base + (ahead[1] - x.origin) * step, tail);
        }
        const T* a = base + (matrix.col[slot] - x.origin) * step;
        const T* b = base + (matrix.col[slot + 1] - x.origin) * step;
        const V weight_a = splat<T>(matrix.value[slot]);
        const V weight_b = splat<T>(matrix.value[slot + 1]);
#pragma GCC unroll 8
        for (int j = 0; j < groups; ++j) {
            even[j] += weight_a * load<T>(a + place<T, groups>(j, tail));
            odd[j] += weight_b * load<T>(b + place<T, groups>(j, tail));
        }
    }
    if (slot < last) {
        const T* a = base + (matrix.col[slot] - x.origin) * step;
        const V weight = splat<T>(matrix.value[slot]);
#pragma GCC unroll 8
        for (int j = 0; j < groups; ++j) even[j] += weight * load<T>(a + place<T, groups>(j, tail));
    }
#pragma GCC unroll 8
    for (int j = 0; j < groups; ++j) store<T>(out + place<T, groups>(j, tail), even[j] + odd[j]);
}

// One row of any width of at least a vector, of rows that are `step` numbers apart. Where the width
// is no multiple of a vector, the last two vectors overlap and both write the same numbers where
// they do.
template <class T>
ADGN_INLINE void gather_any_row(const Matrix<T>& matrix, Index row, Index ahead_end,
                                Rows<const T> x, Index width, Index step, T* out) {
    const Index first = matrix.rowptr[row], last = matrix.rowptr[row + 1];
    const Index vectors = (width + lanes<T> - 1) / lanes<T>;
    for (Index j = 0; j < vectors;) {
        const Index offset = j * lanes<T>, left = vectors - j, end = width - lanes<T> - offset;
        if (left >= 4) {
            gather_row<T, 4>(matrix, first, last, ahead_end, x, step, offset,
                             left == 4 ? end : 3 * lanes<T>, out + offset);
            j += 4;
        } else if (left == 3) {
            gather_row<T, 3>(matrix, first, last, ahead_end, x, step, offset, end, out + offset);
            j += 3;
        } else if (left == 2) {
            gather_row<T, 2>(matrix, first, last, ahead_end, x, step, offset, end, out + offset);
            j += 2;
        } else {
            // Alone, it begins where it must to end with the row.
            gather_row<T, 1>(matrix, first, last, ahead_end, x, step, width - lanes<T>, 0,
                             out + width - lanes<T>);
            j += 1;
        }
    }
}

// out[i - begin] = (A x)[i]; `width` is at least a vector.
template <class T>
ADGN_INLINE void gather_rows(const Matrix<T>& matrix, Index begin, Index end, Rows<const T> x,
                             Index width, T* out) {
    const Index ahead_end = matrix.rowptr[end];
    for (Index i = begin; i < end; ++i, out += width)
        gather_any_row<T>(matrix, i, ahead_end, x, width, width, out);
}

// `groups` vectors of each of some sorted rows; the sums are those of `gather_row`.
template <class T, int groups, bool weighted>
ADGN_INLINE void gather_sorted_columns(const SortedRows<T>& sorted, Index rows, const T* x,
                                       Index width, T* out) {
    using V = Vector<T>;
    const std::int32_t* offset = sorted.offset;
    const T* value = sorted.value;
    for (Index k = 0; k < rows; ++k) {
        V even[groups] = {}, odd[groups] = {};
        std::int32_t left = sorted.count[k];
        for (; left >= 2; left -= 2, offset += 2) {
            const T* a = x + offset[0];
            const T* b = x + offset[1];
            const V weight_a = splat<T>(weighted ? value[0] : T(1));
            const V weight_b = splat<T>(weighted ? value[1] : T(1));
            if (weighted) value += 2;
#pragma GCC unroll 8
            for (int j = 0; j < groups; ++j) {
                even[j] += weight_a * load<T>(a + j * lanes<T>);
                odd[j] += weight_b * load<T>(b + j * lanes<T>);
            }
        }
        if (left) {
            const T* a = x + *offset++;
            const V weight = splat<T>(weighted ? *value++ : T(1));
#pragma GCC unroll 8
            for (int j = 0; j < groups; ++j) even[j] += weight * load<T>(a + j * lanes<T>);
        }
        T* to = out + sorted.place[k] * width;
#pragma GCC unroll 8
        for (int j = 0; j < groups; ++j) store<T>(to + j * lanes<T>, even[j] + odd[j]);
    }
}

// out[i] = (A x)[i] for the rows i of a tile; `width` is a multiple of a vector.
template <class T, bool weighted>
ADGN_INLINE void gather_sorted(const SortedRows<T>& sorted, Index rows, const T* x, Index width,
                               T* out) {
    const Index vectors = width / lanes<T>;
    Index j = 0;
    for (; j + 4 <= vectors; j += 4)
        gather_sorted_columns<T, 4, weighted>(sorted, rows, x + j * lanes<T>, width,
                                              out + j * lanes<T>);
    for (; j + 2 <= vectors; j += 2)
        gather_sorted_columns<T, 2, weighted>(sorted, rows, x + j * lanes<T>, width,
                                              out + j * lanes<T>);
    if (j < vectors)
        gather_sorted_columns<T, 1, weighted>(sorted, rows, x + j * lanes<T>, width,
                                              out + j * lanes<T>);
}

// One row of any width.
template <class T>
ADGN_INLINE void gather_one(const Matrix<T>& matrix, Index row, Index ahead_end, Rows<const T> x,
                            Index width, Index step, T* out) {
    if (width >= lanes<T>) {
        gather_any_row<T>(matrix, row, ahead_end, x, width, step, out);
        return;
    }
    for (Index j = 0; j < width; ++j) out[j] = T(0);
    for (Index slot = matrix.rowptr[row]; slot < matrix.rowptr[row + 1]; ++slot) {
        const T weight = matrix.value[slot];
        const T* from = x.data + (matrix.col[slot] - x.origin) * step;
        for (Index j = 0; j < width; ++j) out[j] += weight * from[j];
    }
}

// out = A x for the rows begin … end - 1, of any width.
template <class T>
void product(const Matrix<T>& matrix, Index begin, Index end, Index channels, const T* x, T* out) {
    const Index ahead_end = matrix.rowptr[end];
    for (Index i = begin; i < end; ++i)
        gather_one<T>(matrix, i, ahead_end, {x, 0}, channels, channels, out + i * channels);
}

}  // namespace ADGN_ISA
}  // namespace adgn
