#include "locality.hpp"

#include <algorithm>

#include "parallel.hpp"

namespace adgn {
namespace {

constexpr std::int32_t levels = 64;
constexpr std::int32_t none = -1;

// Nodes by level, the one that was moved last first: a doubly linked list for each level, so that
// moving a node and taking one take constant time.
class Waiting {
  public:
    explicit Waiting(Index nodes) : next_(nodes), previous_(nodes), level_(nodes) {
        std::fill_n(first_, levels, none);
        std::fill_n(level_.get(), nodes, none);
    }

    void move(std::int32_t node, std::int32_t level) {
        std::int32_t* first = first_ + level;
        if (*first == node) return;
        remove(node);
        next_.get()[node] = *first;
        previous_.get()[node] = none;
        if (*first != none) previous_.get()[*first] = node;
        *first = node;
        level_.get()[node] = level;
        top_ = std::max(top_, level);
    }

    void remove(std::int32_t node) {
        const std::int32_t level = level_.get()[node];
        if (level == none) return;
        const std::int32_t before = previous_.get()[node], after = next_.get()[node];
        (before == none ? first_[level] : next_.get()[before]) = after;
        if (after != none) previous_.get()[after] = before;
        level_.get()[node] = none;
    }

    // The first node of the highest level, or `none`.
    std::int32_t best() {
        while (top_ > 0 && first_[top_] == none) --top_;
        return first_[top_];
    }

  private:
    Buffer<std::int32_t> next_, previous_, level_;
    std::int32_t first_[levels];
    std::int32_t top_ = 0;
};

}  // namespace

void order_by_neighbours(const std::int32_t* rowptr, const std::int32_t* col,
                         const std::int32_t* rowptr_t, const std::int32_t* col_t, Index nodes,
                         Index first, Index count, std::int32_t* order) {
    Waiting waiting(nodes);
    Buffer<std::int32_t> heard_memory(nodes);
    std::int32_t* heard = heard_memory.get();  // how many neighbours are placed; `none`: it is too
    std::fill_n(heard, nodes, 0);
    auto touch = [&](std::int32_t node) {
        if (heard[node] == none) return;
        const std::int64_t known = ++heard[node];
        std::int64_t degree = rowptr[node + 1] - rowptr[node];
        if (rowptr_t) degree += rowptr_t[node + 1] - rowptr_t[node];
        // Not more than all, unless what was given as the transpose is another matrix.
        const std::int64_t share = known * (levels - 1) / std::max<std::int64_t>(degree, 1);
        waiting.move(node, std::int32_t(std::min<std::int64_t>(share, levels - 1)));
    };
    Index unseen = 0;
    for (Index place = 0; place < count; ++place) {
        std::int32_t node = place ? waiting.best() : std::int32_t(first);
        if (node == none) {
            while (heard[unseen] == none) ++unseen;
            node = std::int32_t(unseen);
        }
        waiting.remove(node);
        heard[node] = none;
        order[place] = node;
        for (std::int32_t s = rowptr[node]; s < rowptr[node + 1]; ++s) touch(col[s]);
        if (rowptr_t)
            for (std::int32_t s = rowptr_t[node]; s < rowptr_t[node + 1]; ++s) touch(col_t[s]);
    }
}

Index count_misses(const std::int32_t* rowptr, const std::int32_t* col, Index columns,
                   const std::int32_t* rows, Index count, Index begin, Index window) {
    Buffer<Index> fetched_memory(columns);
    Index* fetched = fetched_memory.get();  // the number of the last fetch of each column
    std::fill_n(fetched, columns, -window - 1);
    Index misses = 0, before = 0;
    for (Index i = 0; i < count; ++i) {
        if (i == begin) before = misses;
        const std::int32_t row = rows[i];
        for (std::int32_t s = rowptr[row]; s < rowptr[row + 1]; ++s)
            if (fetched[col[s]] < misses - window) fetched[col[s]] = misses++;
    }
    return begin < count ? misses - before : 0;
}

}  // namespace adgn
