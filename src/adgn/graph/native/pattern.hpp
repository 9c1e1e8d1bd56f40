// Building and checking the index arrays of a sparse matrix.
#pragma once

#include <cstdint>

#include "kernels.hpp"

namespace adgn {

// Sorts entries by row and column, merging repeated ones, in time proportional to their number.
// rowptr: [rows + 1]; col, slot: [entries]. Entry e ends in slot[e]. Returns how many slots there
// are, or -1 - e where entry e is out of range.
Index sort_entries(const Index* row, const Index* column, Index entries, Index rows, Index columns,
                   std::int32_t* rowptr, std::int32_t* col, std::int32_t* slot);

// The transpose: rowptr_t: [columns + 1]; col_t, order: [slots]. Slot i of the transpose holds slot
// order[i] of the matrix.
void transpose(const std::int32_t* rowptr, const std::int32_t* col, Index rows, Index columns,
               std::int32_t* rowptr_t, std::int32_t* col_t, std::int32_t* order);

// Some blocks of a block-diagonal matrix, one after the other: block b has the rows (and columns)
// node_ptr[b] to node_ptr[b + 1]. rowptr_out: [rows of all + 1]; col_out and slot_out (the slots that
// they come from): [entries of all].
void take_blocks(const std::int32_t* rowptr, const std::int32_t* col, const Index* node_ptr,
                 const Index* blocks, Index count, std::int32_t* rowptr_out,
                 std::int32_t* col_out, std::int32_t* slot_out);

enum class Fault : int { none = 0, pointers = 1, column = 2, blocks = 3, crossing = 4 };

// Whether a CSR pattern stays inside its arrays (and each row inside its block), and if not, where
// it first does not.
Fault check_pattern(const std::int32_t* rowptr, const std::int32_t* col, Index rows, Index columns,
                    Index slots, const Index* block_ptr, Index blocks, Index* place);

}  // namespace adgn
