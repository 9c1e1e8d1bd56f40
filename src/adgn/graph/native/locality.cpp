#include "locality.hpp"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

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

Reading read_rows(const std::int32_t* rowptr, const std::int32_t* col, Index matrix_rows,
                  Index columns, const std::int32_t* rows, Index count, Index begin, Index window) {
    Buffer<Index> fetched_memory(columns);
    Index* fetched = fetched_memory.get();  // the number of the last fetch of each column
    std::fill_n(fetched, columns, -window - 1);
    Index fetches = 0;
    Reading result{0, 0, -1};
    for (Index i = 0; i < count; ++i) {
        if (rows[i] < 0 || rows[i] >= matrix_rows) {
            result.wrong = i;
            break;
        }
        const std::int32_t first = rowptr[rows[i]], last = rowptr[rows[i] + 1];
        if (i >= begin) result.entries += last - first;
        for (std::int32_t s = first; s < last; ++s) {
            const std::int32_t column = col[s];
            const Index oldest = fetches - window;
            if (fetched[column] >= oldest) continue;
            const bool follows = column > 0 && fetched[column - 1] >= oldest;
            result.waits += i >= begin && !follows;
            fetched[column] = fetches++;
        }
    }
    return result;
}

Index renumber(const std::int32_t* rowptr, const std::int32_t* col, const std::int32_t* order,
               Index nodes, std::int32_t* place, std::int32_t* rowptr_out, std::int32_t* col_out,
               std::int32_t* slot_out) {
    std::fill_n(place, nodes, none);
    for (Index i = 0; i < nodes; ++i) {
        if (order[i] < 0 || order[i] >= nodes || place[order[i]] != none) return i;
        place[order[i]] = std::int32_t(i);
    }
    std::vector<std::pair<std::int32_t, std::int32_t>> entries;  // of one row: column and slot
    std::int32_t next = 0;
    for (Index i = 0; i < nodes; ++i) {
        rowptr_out[i] = next;
        entries.clear();
        for (std::int32_t s = rowptr[order[i]]; s < rowptr[order[i] + 1]; ++s)
            entries.emplace_back(place[col[s]], s);
        std::sort(entries.begin(), entries.end());
        for (const auto& [column, slot] : entries) {
            col_out[next] = column;
            slot_out[next++] = slot;
        }
    }
    rowptr_out[nodes] = next;
    return -1;
}

void take_rows(const char* from, const std::int32_t* order, Index rows, Index bytes, char* out,
               int threads) {
    constexpr Index rows_of_part = 4096;
    auto work = [&](int part, int) {
        const Index end = std::min(rows, (part + 1) * rows_of_part);
        for (Index i = part * rows_of_part; i < end; ++i)
            std::memcpy(out + i * bytes, from + order[i] * bytes, std::size_t(bytes));
    };
    run_parts(int((rows + rows_of_part - 1) / rows_of_part), threads, work);
}

}  // namespace adgn
