// Rows cut into parts of about equal work.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels.hpp"

namespace adgn {

// Enough parts to even out unequal threads, and as many whatever the number of threads up to
// there: the order in which gradients are added up follows the parts.
constexpr int usual_parts = 16;
// Below this much work per part (in multiplications: some 10 µs) another part costs more than it
// saves.
constexpr double least_work = 7e5;

// The first of each part's rows, and the end: at most max(usual_parts, threads) parts. `rowptr` may
// begin at any row of a matrix. A second matrix, whose entries are work too, may be null.
inline std::vector<Index> cut_rows(const std::int32_t* rowptr, const std::int32_t* second_rowptr,
                                   Index rows, double work_per_entry, double work_per_row,
                                   int threads) {
    const auto work_before = [&](Index row) {
        double entries = double(rowptr[row] - rowptr[0]);
        if (second_rowptr) entries += double(second_rowptr[row] - second_rowptr[0]);
        return work_per_entry * entries + work_per_row * double(row);
    };
    const double total = work_before(rows);
    const double affordable = std::max(1.0, total / least_work);
    const int parts = int(std::min<double>(std::max(usual_parts, threads), affordable));
    std::vector<Index> first(std::size_t(parts) + 1, 0);
    first.back() = rows;
    for (int part = 1; part < parts; ++part) {
        Index low = first[std::size_t(part) - 1], high = rows;
        while (low < high) {
            const Index middle = low + (high - low) / 2;
            if (work_before(middle) < total * part / parts)
                low = middle + 1;
            else
                high = middle;
        }
        first[std::size_t(part)] = low;
    }
    return first;
}

}  // namespace adgn
