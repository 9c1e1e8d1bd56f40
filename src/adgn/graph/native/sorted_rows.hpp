// Rows of a block in the order in which they are gathered.
#pragma once

#include <algorithm>
#include <vector>

#include "integrate.hpp"
#include "parallel.hpp"

namespace adgn {

// Rows with so many entries or more count as equal: there are few of them.
constexpr Index distinct_counts = 64;

// Room for the sorted rows of one block at a time, one room for each worker.
template <class T>
class SortedBlocks {
  public:
    explicit SortedBlocks(const Integration<T>& problem)
        : problem_(problem), rooms_(std::size_t(problem.threads)) {
        for (Index b = 0; b < problem.blocks; ++b) {
            const Index begin = problem.block_ptr[b], end = problem.block_ptr[b + 1];
            rows_ = std::max(rows_, end - begin);
            entries_ = std::max(entries_, entries(problem.matrix, begin, end));
            if (problem.second.rowptr)
                entries_ = std::max(entries_, entries(problem.second, begin, end));
        }
        width_ = padded<T>(problem.channels);
        fits_ = rows_ * width_ <= INT32_MAX;
        if (!fits_) return;
        for (Room& room : rooms_) {
            resize(room.first);
            if (problem.second.rowptr) resize(room.second);
        }
    }

    // The rows begin … end - 1, a block. They are there until the worker asks for another one.
    SortedBlock<T> sort(Index begin, Index end, int worker) {
        SortedBlock<T> block{};
        if (!fits_) return block;
        Room& room = rooms_[std::size_t(worker)];
        block.first = sort(problem_.matrix, begin, end, room.first);
        if (problem_.second.rowptr) block.second = sort(problem_.second, begin, end, room.second);
        return block;
    }

  private:
    struct Arrays {
        std::vector<std::int32_t> place, count, offset;
        std::vector<T> value;
    };
    struct Room {
        Arrays first, second;
    };

    static Index entries(const Matrix<T>& matrix, Index begin, Index end) {
        return matrix.rowptr[end] - matrix.rowptr[begin];
    }

    void resize(Arrays& arrays) {
        arrays.place.resize(std::size_t(rows_));
        arrays.count.resize(std::size_t(rows_));
        arrays.offset.resize(std::size_t(entries_) + 1);  // has an address even without entries
        arrays.value.resize(std::size_t(entries_));
    }

    SortedRows<T> sort(const Matrix<T>& matrix, Index begin, Index end, Arrays& to) {
        const std::int32_t slot_begin = matrix.rowptr[begin], slot_end = matrix.rowptr[end];
        const bool ones = std::all_of(matrix.value + slot_begin, matrix.value + slot_end,
                                      [](T value) { return value == T(1); });
        std::int32_t* offset = to.offset.data();
        T* value = to.value.data();
        for (Index row = begin; row < end; row += tile_rows) {
            const Index rows = std::min(tile_rows, end - row);
            sort_tile(matrix.rowptr + row, rows, to.place.data() + (row - begin));
            for (Index k = 0; k < rows; ++k) {
                const Index from = row + to.place[std::size_t(row - begin + k)];
                const std::int32_t first = matrix.rowptr[from], last = matrix.rowptr[from + 1];
                to.count[std::size_t(row - begin + k)] = last - first;
                for (std::int32_t slot = first; slot < last; ++slot)
                    *offset++ = std::int32_t((matrix.col[slot] - begin) * width_);
                if (!ones) value = std::copy(matrix.value + first, matrix.value + last, value);
            }
        }
        return {to.place.data(), to.count.data(), to.offset.data(),
                ones ? nullptr : to.value.data()};
    }

    // The places of some rows, those with the fewest entries first.
    static void sort_tile(const std::int32_t* rowptr, Index rows, std::int32_t* place) {
        const auto bucket = [&](Index i) {
            return std::min<Index>(rowptr[i + 1] - rowptr[i], distinct_counts - 1);
        };
        std::int32_t next[distinct_counts + 1] = {};
        for (Index i = 0; i < rows; ++i) ++next[bucket(i) + 1];
        for (Index k = 0; k < distinct_counts; ++k) next[k + 1] += next[k];
        for (Index i = 0; i < rows; ++i) place[next[bucket(i)]++] = std::int32_t(i);
    }

    const Integration<T>& problem_;
    Index rows_ = 0, entries_ = 0, width_ = 0;
    bool fits_ = false;
    std::vector<Room> rooms_;
};

}  // namespace adgn
