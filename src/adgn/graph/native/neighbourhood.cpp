#include "neighbourhood.hpp"

#include <algorithm>

#include "parallel.hpp"

namespace adgn {
namespace {

constexpr Index edges_per_part = 256;
constexpr std::uint8_t of_first = 1, of_second = 2, of_both = 3;

struct Neighbours {
    const std::int32_t* rowptr;
    const std::int32_t* col;
    const std::int32_t* begin(Index node) const { return col + rowptr[node]; }
    const std::int32_t* end(Index node) const { return col + rowptr[node + 1]; }
    Index degree(Index node) const { return rowptr[node + 1] - rowptr[node]; }
};

struct Counts {
    Index triangles = 0, squares = 0, most = 0, lone = 0;
};

// `mark` and `cycles` are zero for all nodes, before and after.
Counts count_at_edge(const Neighbours& rows, Index i, Index j, bool with_lone, std::uint8_t* mark,
                     std::int32_t* cycles) {
    Counts counts;
    for (auto k = rows.begin(i); k != rows.end(i); ++k) mark[*k] |= of_first;
    for (auto w = rows.begin(j); w != rows.end(j); ++w) mark[*w] |= of_second;
    mark[i] = mark[j] = 0;  // the edge itself closes no cycle
    Index work_first = 0, work_second = 0;
    for (auto k = rows.begin(i); k != rows.end(i); ++k) {
        if (mark[*k] == of_first) work_first += rows.degree(*k);
        if (mark[*k] == of_both) ++counts.triangles;
    }
    for (auto w = rows.begin(j); w != rows.end(j); ++w)
        if (mark[*w] == of_second) work_second += rows.degree(*w);
    // A cycle is met from either side: from the one with fewer edges.
    const bool from_second = work_second <= work_first;
    const Index outer = from_second ? j : i, inner = from_second ? i : j;
    const std::uint8_t outer_mark = from_second ? of_second : of_first;
    const std::uint8_t inner_mark = of_both - outer_mark;
    for (auto w = rows.begin(outer); w != rows.end(outer); ++w) {
        if (mark[*w] != outer_mark) continue;
        Index through = 0;
        for (auto k = rows.begin(*w); k != rows.end(*w); ++k) {
            if (mark[*k] != inner_mark) continue;
            ++through;
            if (++cycles[*k] == 1) ++counts.squares;
            counts.most = std::max<Index>(counts.most, cycles[*k]);
        }
        if (through > 0) ++counts.squares;
        counts.most = std::max(counts.most, through);
    }
    if (with_lone && counts.triangles > 0) {
        for (auto c = rows.begin(i); c != rows.end(i); ++c) {
            if (mark[*c] != of_both) continue;
            std::uint8_t met = 0;
            for (auto x = rows.begin(*c); x != rows.end(*c); ++x) met |= mark[*x];
            counts.lone += !(met & of_first) + !(met & of_second);
        }
    }
    for (auto k = rows.begin(inner); k != rows.end(inner); ++k) cycles[*k] = 0;
    for (auto k = rows.begin(i); k != rows.end(i); ++k) mark[*k] = 0;
    for (auto w = rows.begin(j); w != rows.end(j); ++w) mark[*w] = 0;
    return counts;
}

}  // namespace

void count_at_edges(const std::int32_t* rowptr, const std::int32_t* col, Index nodes,
                    const Index* first, const Index* second, Index edges, Index* triangles,
                    Index* squares, Index* most, Index* lone, int threads) {
    const Neighbours rows{rowptr, col};
    const int parts = int((edges + edges_per_part - 1) / edges_per_part);
    threads = std::max(1, std::min(threads, parts));
    Buffer<std::uint8_t> mark(nodes * threads);
    Buffer<std::int32_t> cycles(nodes * threads);
    std::fill_n(mark.get(), nodes * threads, std::uint8_t(0));
    std::fill_n(cycles.get(), nodes * threads, 0);
    auto work = [&](int part, int worker) {
        const Index last = std::min(edges, (part + 1) * edges_per_part);
        for (Index e = part * edges_per_part; e < last; ++e) {
            const Counts found =
                count_at_edge(rows, first[e], second[e], lone != nullptr,
                              mark.get() + worker * nodes, cycles.get() + worker * nodes);
            triangles[e] = found.triangles;
            squares[e] = found.squares;
            most[e] = found.most;
            if (lone != nullptr) lone[e] = found.lone;
        }
    };
    run_parts(parts, threads, work);
}

}  // namespace adgn
