#include "pattern.hpp"

#include <algorithm>

#include "parallel.hpp"

namespace adgn {
namespace {

// counts[i + 1] of each i becomes the place where i's entries start in counts[i].
void starts_from_counts(std::int32_t* counts, Index size) {
    for (Index i = 0; i < size; ++i) counts[i + 1] += counts[i];
}

}  // namespace

Index sort_entries(const Index* row, const Index* column, Index entries, Index rows, Index columns,
                   std::int32_t* rowptr, std::int32_t* col, std::int32_t* slot) {
    Buffer<std::int32_t> by_column_memory(columns + 1), order_memory(entries);
    std::int32_t* next_of_column = by_column_memory.get();
    std::int32_t* order = order_memory.get();
    std::fill_n(next_of_column, columns + 1, 0);
    std::fill_n(rowptr, rows + 1, 0);
    for (Index e = 0; e < entries; ++e) {
        if (row[e] < 0 || row[e] >= rows || column[e] < 0 || column[e] >= columns) return -1 - e;
        ++next_of_column[column[e] + 1];
        ++rowptr[row[e] + 1];
    }
    starts_from_counts(next_of_column, columns);
    starts_from_counts(rowptr, rows);
    // Two stable counting sorts, by column and then by row, leave them sorted by both.
    std::int32_t* by_column = slot;  // until the slots are known
    for (Index e = 0; e < entries; ++e) by_column[next_of_column[column[e]]++] = std::int32_t(e);
    {
        Buffer<std::int32_t> next_memory(rows + 1);
        std::int32_t* next_of_row = next_memory.get();
        std::copy_n(rowptr, rows + 1, next_of_row);
        for (Index i = 0; i < entries; ++i) order[next_of_row[row[by_column[i]]]++] = by_column[i];
    }
    std::int32_t slots = 0;
    for (Index i = 0; i < rows; ++i) {
        const std::int32_t first = rowptr[i], last = rowptr[i + 1];
        rowptr[i] = slots;
        for (std::int32_t k = first; k < last; ++k) {
            const std::int32_t e = order[k];
            const std::int32_t c = std::int32_t(column[e]);
            if (slots == rowptr[i] || col[slots - 1] != c) col[slots++] = c;
            slot[e] = slots - 1;
        }
    }
    rowptr[rows] = slots;
    return slots;
}

void transpose(const std::int32_t* rowptr, const std::int32_t* col, Index rows, Index columns,
               std::int32_t* rowptr_t, std::int32_t* col_t, std::int32_t* order) {
    const Index slots = rowptr[rows];
    Buffer<std::int32_t> next_memory(columns + 1);
    std::int32_t* next = next_memory.get();
    std::fill_n(rowptr_t, columns + 1, 0);
    for (Index i = 0; i < slots; ++i) ++rowptr_t[col[i] + 1];
    starts_from_counts(rowptr_t, columns);
    std::copy_n(rowptr_t, columns + 1, next);
    for (Index i = 0; i < rows; ++i)
        for (std::int32_t s = rowptr[i]; s < rowptr[i + 1]; ++s) {
            const std::int32_t place = next[col[s]]++;
            col_t[place] = std::int32_t(i);
            order[place] = s;
        }
}

void take_blocks(const std::int32_t* rowptr, const std::int32_t* col, const Index* node_ptr,
                 const Index* blocks, Index count, std::int32_t* rowptr_out,
                 std::int32_t* col_out, std::int32_t* slot_out) {
    Index row = 0, slot = 0;
    rowptr_out[0] = 0;
    for (Index i = 0; i < count; ++i) {
        const Index begin = node_ptr[blocks[i]], end = node_ptr[blocks[i] + 1];
        const std::int32_t first = rowptr[begin], last = rowptr[end];
        const std::int32_t moved = std::int32_t(row - begin), placed = std::int32_t(slot - first);
        for (Index r = begin; r < end; ++r) rowptr_out[r + moved + 1] = rowptr[r + 1] + placed;
        // The arrays do not overlap, which the compiler must be told to do several at once.
        const std::int32_t* __restrict__ from = col + first;
        std::int32_t* __restrict__ to = col_out + slot;
        std::int32_t* __restrict__ origin = slot_out + slot;
        for (std::int32_t k = 0; k < last - first; ++k) {
            to[k] = from[k] + moved;
            origin[k] = first + k;
        }
        row += end - begin;
        slot += last - first;
    }
}

Fault check_pattern(const std::int32_t* rowptr, const std::int32_t* col, Index rows, Index columns,
                    Index slots, const Index* block_ptr, Index blocks, Index* place) {
    *place = 0;
    if (rowptr[0] != 0) return Fault::pointers;
    for (Index i = 0; i < rows; ++i) {
        *place = i + 1;
        if (rowptr[i + 1] < rowptr[i] || rowptr[i + 1] > slots) return Fault::pointers;
    }
    if (rowptr[rows] != slots) return Fault::pointers;
    for (Index s = 0; s < slots; ++s) {
        *place = s;
        if (col[s] < 0 || col[s] >= columns) return Fault::column;
    }
    if (!block_ptr) return Fault::none;
    *place = 0;
    if (blocks < 0 || block_ptr[0] != 0) return Fault::blocks;
    for (Index b = 0; b < blocks; ++b) {
        *place = b + 1;
        if (block_ptr[b + 1] < block_ptr[b] || block_ptr[b + 1] > rows) return Fault::blocks;
    }
    if (block_ptr[blocks] != rows || rows != columns) return Fault::blocks;
    for (Index b = 0; b < blocks; ++b)
        for (Index s = rowptr[block_ptr[b]]; s < rowptr[block_ptr[b + 1]]; ++s) {
            *place = s;
            if (col[s] < block_ptr[b] || col[s] >= block_ptr[b + 1]) return Fault::crossing;
        }
    return Fault::none;
}

}  // namespace adgn
