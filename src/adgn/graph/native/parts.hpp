// How the work of an integration is cut into parts.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "integrate.hpp"
#include "partition.hpp"

namespace adgn {

// What neighbour sums cost compared with multiply-and-adds in registers, as measured.
constexpr double gather_cost = 4.0;

// Parts of the rows begin … end - 1.
template <class T>
std::vector<Index> parts_of(const Integration<T>& problem, int passes, Index begin, Index end) {
    const double width = double(padded<T>(problem.channels));
    const std::int32_t* second = problem.second.rowptr;
    std::vector<Index> first = cut_rows(
        problem.matrix.rowptr + begin, second ? second + begin : nullptr, end - begin,
        gather_cost * width,
        double(1 + problem.matrices()) * passes * double(problem.channels) * width,
        problem.threads);
    for (Index& row : first) row += begin;
    return first;
}

// Parts of whole blocks: the first block of each part, and the end.
template <class T>
std::vector<Index> block_parts(const Integration<T>& problem, int passes) {
    std::vector<Index> first;
    const Index* ptr = problem.block_ptr;
    for (Index row : parts_of(problem, passes, 0, problem.nodes))
        first.push_back(std::lower_bound(ptr, ptr + problem.blocks, row) - ptr);
    first.back() = problem.blocks;
    return first;
}

template <class T>
Index largest_block(const Integration<T>& problem) {
    Index largest = 0;
    for (Index b = 0; b < problem.blocks; ++b)
        largest = std::max(largest, problem.block_ptr[b + 1] - problem.block_ptr[b]);
    return largest;
}

// Rows of `columns` numbers between arrays of different row lengths; what is left over is zero.
template <class T>
void copy_rows(const T* from, Index from_step, T* to, Index to_step, Index rows, Index columns) {
    if (from_step == columns && to_step == columns) {
        std::memcpy(to, from, std::size_t(rows * columns) * sizeof(T));
        return;
    }
    for (Index i = 0; i < rows; ++i) {
        std::copy_n(from + i * from_step, columns, to + i * to_step);
        if (to_step > columns) std::fill_n(to + i * to_step + columns, to_step - columns, T(0));
    }
}

}  // namespace adgn
