// Products of a tile of states with the weights, kept in registers block by block.
#pragma once

#include "kernels.hpp"
#include "simd.hpp"

namespace adgn {
namespace ADGN_ISA {

// Blocks of 6 (or 5) rows by so many vectors of columns: as many sums as there are registers.
constexpr int block_rows = 6;
constexpr int block_vectors = ADGN_BLOCK_VECTORS;

// out[i] = start[i] + [states[i] gathered[i] …] B for `rows` rows and `groups` vectors of columns.
// `gathered` is [matrices, tile_rows, width].
template <class T, int rows, int groups>
ADGN_INLINE void product_block(const T* states, const T* gathered, Index matrices,
                               Index channels, Index width, const T* weights, const T* start,
                               Index start_step, T* out) {
    using V = Vector<T>;
    V sum[rows][groups];
#pragma GCC unroll 8
    for (int i = 0; i < rows; ++i)
#pragma GCC unroll 8
        for (int j = 0; j < groups; ++j)
            sum[i][j] = load<T>(start + i * start_step + j * lanes<T>);
    const T* b = weights;
    for (Index k = 0; k < channels; ++k, b += width) {
        V column[groups];
#pragma GCC unroll 8
        for (int j = 0; j < groups; ++j) column[j] = load<T>(b + j * lanes<T>);
#pragma GCC unroll 8
        for (int i = 0; i < rows; ++i) {
            const V a = splat<T>(states[i * width + k]);
#pragma GCC unroll 8
            for (int j = 0; j < groups; ++j) sum[i][j] += a * column[j];
        }
    }
    for (Index matrix = 0; matrix < matrices; ++matrix, gathered += tile_rows * width) {
        for (Index k = 0; k < channels; ++k, b += width) {
            V column[groups];
#pragma GCC unroll 8
            for (int j = 0; j < groups; ++j) column[j] = load<T>(b + j * lanes<T>);
#pragma GCC unroll 8
            for (int i = 0; i < rows; ++i) {
                const V a = splat<T>(gathered[i * width + k]);
#pragma GCC unroll 8
                for (int j = 0; j < groups; ++j) sum[i][j] += a * column[j];
            }
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; ++i)
#pragma GCC unroll 8
        for (int j = 0; j < groups; ++j) store<T>(out + i * width + j * lanes<T>, sum[i][j]);
}

template <class T, int rows>
ADGN_INLINE void product_columns(const T* states, const T* gathered, Index matrices,
                                 Index channels, Index width, const T* weights, const T* start,
                                 Index start_step, T* out) {
    const Index vectors = width / lanes<T>;
    Index j = 0;
    for (; j + block_vectors <= vectors; j += block_vectors)
        product_block<T, rows, block_vectors>(states, gathered, matrices, channels, width,
                                              weights + j * lanes<T>, start + j * lanes<T>,
                                              start_step, out + j * lanes<T>);
    for (; j + 2 <= vectors; j += 2)
        product_block<T, rows, 2>(states, gathered, matrices, channels, width,
                                  weights + j * lanes<T>, start + j * lanes<T>, start_step,
                                  out + j * lanes<T>);
    if (j < vectors)
        product_block<T, rows, 1>(states, gathered, matrices, channels, width,
                                  weights + j * lanes<T>, start + j * lanes<T>, start_step,
                                  out + j * lanes<T>);
}

// How many blocks a tile of `count` rows takes.
constexpr Index blocks_of(Index count) { return (count + block_rows - 1) / block_rows; }

// Whether blocks of 6 and 5 rows make up the tile, so that none of them works on further rows.
constexpr bool fits_in_blocks(Index count) { return count >= blocks_of(count) * (block_rows - 1); }

// The rows of a tile as `product_tile` takes them: where they lie, or in `room`.
template <class T>
ADGN_INLINE const T* whole_blocks(const T* rows, Index count, Index width, T* room) {
    if (fits_in_blocks(count)) return rows;
    std::memcpy(room, rows, std::size_t(count * width) * sizeof(T));
    return room;
}

// The product for a tile of `count` rows. Unless it `fits_in_blocks`, all arrays have room for
// tile_rows rows (but for a `start` of one row, start_step = 0): the last block works on rows that
// nobody reads.
template <class T>
static __attribute__((noinline)) void product_tile(const T* states, const T* gathered,
                                                   Index matrices, Index count, Index channels,
                                                   Index width, const T* weights, const T* start,
                                                   Index start_step, T* out) {
    const Index blocks = blocks_of(count);
    const Index short_blocks = fits_in_blocks(count) ? blocks * block_rows - count : Index(0);
    Index i = 0;
    for (Index block = 0; block < blocks; ++block) {
        const T* here = states + i * width;
        if (block < short_blocks) {
            product_columns<T, block_rows - 1>(here, gathered + i * width, matrices, channels,
                                               width, weights, start + i * start_step, start_step,
                                               out + i * width);
            i += block_rows - 1;
        } else {
            product_columns<T, block_rows>(here, gathered + i * width, matrices, channels, width,
                                           weights, start + i * start_step, start_step,
                                           out + i * width);
            i += block_rows;
        }
    }
}

// sums[k] += sum over the tile's rows of left[i][k] right[i], for `rows` numbers k.
template <class T, int rows, int groups>
ADGN_INLINE void outer_block(const T* left, const T* right, Index count, Index width, T* sums) {
    using V = Vector<T>;
    V sum[rows][groups];
#pragma GCC unroll 8
    for (int k = 0; k < rows; ++k)
#pragma GCC unroll 8
        for (int j = 0; j < groups; ++j) sum[k][j] = load<T>(sums + k * width + j * lanes<T>);
    for (Index i = 0; i < count; ++i, left += width, right += width) {
        V x[groups];
#pragma GCC unroll 8
        for (int j = 0; j < groups; ++j) x[j] = load<T>(right + j * lanes<T>);
#pragma GCC unroll 8
        for (int k = 0; k < rows; ++k) {
            const V a = splat<T>(left[k]);
#pragma GCC unroll 8
            for (int j = 0; j < groups; ++j) sum[k][j] += a * x[j];
        }
    }
#pragma GCC unroll 8
    for (int k = 0; k < rows; ++k)
#pragma GCC unroll 8
        for (int j = 0; j < groups; ++j) store<T>(sums + k * width + j * lanes<T>, sum[k][j]);
}

template <class T, int rows>
ADGN_INLINE void outer_columns(const T* left, const T* right, Index count, Index width, T* sums) {
    const Index vectors = width / lanes<T>;
    Index j = 0;
    for (; j + block_vectors <= vectors; j += block_vectors)
        outer_block<T, rows, block_vectors>(left, right + j * lanes<T>, count, width,
                                            sums + j * lanes<T>);
    for (; j + 2 <= vectors; j += 2)
        outer_block<T, rows, 2>(left, right + j * lanes<T>, count, width, sums + j * lanes<T>);
    if (j < vectors)
        outer_block<T, rows, 1>(left, right + j * lanes<T>, count, width, sums + j * lanes<T>);
}

// sums += leftᵀ right for a tile: [channels, width] += [count, channels]ᵀ [count, width].
template <class T>
static __attribute__((noinline)) void outer_tile(const T* left, const T* right, Index count, Index channels,
                            Index width, T* sums) {
    Index k = 0;
    for (; k + block_rows <= channels; k += block_rows)
        outer_columns<T, block_rows>(left + k, right, count, width, sums + k * width);
    for (; k + 2 <= channels; k += 2)
        outer_columns<T, 2>(left + k, right, count, width, sums + k * width);
    if (k < channels) outer_columns<T, 1>(left + k, right, count, width, sums + k * width);
}

}  // namespace ADGN_ISA
}  // namespace adgn
