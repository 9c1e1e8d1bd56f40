// Counting triangles and 4-cycles at edges of an undirected graph.
#pragma once

#include <cstdint>

#include "kernels.hpp"

namespace adgn {

// For each pair of adjacent nodes i = first[e], j = second[e] of a simple undirected graph, whose
// rows are sorted and symmetric:
//   triangles[e]: the common neighbours of i and j
//   squares[e]: the nodes k, w of 4-cycles i-k-w-j without diagonal, each counted once
//   most[e]: the largest number of such cycles through one k or w
//   lone[e]: over common neighbours c, how many of the edges i-c and j-c lie in no other triangle;
//            left alone where `lone` is null
void count_at_edges(const std::int32_t* rowptr, const std::int32_t* col, Index nodes,
                    const Index* first, const Index* second, Index edges, Index* triangles,
                    Index* squares, Index* most, Index* lone, int threads);

}  // namespace adgn
