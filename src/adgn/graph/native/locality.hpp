// An order of nodes in which neighbours are close to each other.
#pragma once

#include <cstdint>

#include "kernels.hpp"

namespace adgn {

// order: [count]; the first `count` nodes of a permutation that begins with node `first`. Next comes
// always the node that has the largest share of its neighbours placed already, and among equal ones
// the one whose neighbour was placed last; where no placed node has a neighbour left, the first node
// of those left. Shares are compared in 64 steps. The neighbours of a node are the columns of its
// row and, where rowptr_t is not null, those of its row of the transpose.
void order_by_neighbours(const std::int32_t* rowptr, const std::int32_t* col,
                         const std::int32_t* rowptr_t, const std::int32_t* col_t, Index nodes,
                         Index first, Index count, std::int32_t* order);

// What rows of a matrix read, and what a cache spares them.
struct Reading {
    Index entries;  // of the rows
    Index waits;    // entries whose state is fetched, and does not follow one that is there
    Index wrong;    // the place of a row that there is not, or -1
};

// With a cache of the `window` states that were last fetched, for rows one after the other. A state
// that is not there is fetched; where the one before it is there, processors fetch it before it is
// asked for. Counted from rows[begin] on, those before fill the cache. rows: [count].
Reading read_rows(const std::int32_t* rowptr, const std::int32_t* col, Index matrix_rows,
                  Index columns, const std::int32_t* rows, Index count, Index begin, Index window);

// The matrix with row and column order[i] as row and column i, sorted by both. place: [nodes], the
// new number of each node; rowptr_out: [nodes + 1]; col_out and slot_out (the slots that entries
// come from): [slots]. Returns -1, or the first place in `order` whose node is not there or was
// there before.
Index renumber(const std::int32_t* rowptr, const std::int32_t* col, const std::int32_t* order,
              Index nodes, std::int32_t* place, std::int32_t* rowptr_out, std::int32_t* col_out,
              std::int32_t* slot_out);

// Rows of `bytes` bytes each: out[i] = from[order[i]].
void take_rows(const char* from, const std::int32_t* order, Index rows, Index bytes, char* out,
               int threads);

}  // namespace adgn
