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

// How many columns of some rows, one after the other, are not among the `window` columns that were
// last fetched, and are fetched then: what a cache misses that holds so many states. Counted from
// rows[begin] on, those before fill it. rows: [count].
Index count_misses(const std::int32_t* rowptr, const std::int32_t* col, Index columns,
                   const std::int32_t* rows, Index count, Index begin, Index window);

}  // namespace adgn
