#include "edge_work.hpp"

#include <vector>

#include "parallel.hpp"
#include "partition.hpp"

namespace adgn {
namespace {

// What a logit costs beside the channels, exp and the look-ups of its ends, as measured.
constexpr double logit_cost = 16.0;

// Calls work(first row, end) for parts of the rows, whose entries cost so much each.
template <class Work>
void over_rows(const std::int32_t* rowptr, Index rows, double per_entry, double per_row,
               int threads, Work work) {
    const std::vector<Index> parts = cut_rows(rowptr, nullptr, rows, per_entry, per_row, threads);
    auto part_work = [&](int part, int) {
        work(parts[std::size_t(part)], parts[std::size_t(part) + 1]);
    };
    run_parts(int(parts.size()) - 1, threads, part_work);
}

}  // namespace

template <class T>
void edge_dots(const EntryPattern& pattern, Index channels, const T* left, const T* right,
               const T* norm, T floor, T* out, int threads) {
    over_rows(pattern.rowptr, pattern.rows, double(channels), double(channels), threads,
              [&](Index begin, Index end) {
                  kernels<T>().dots({pattern.rowptr, pattern.col, begin, end, channels, left, right,
                                     norm, floor, out});
              });
}

// With p = max(norm[u] norm[j], floor), the cosine of (u, j) changes with x[u] as
// x[j] / p - cosine x[u] / norm[u]², without the second part where p is the floor.
template <class T>
void cosine_backward(const EntryPattern& pattern, Index channels, const T* x, const T* norm,
                     T floor, const T* cosine, const T* grad, T* grad_x, int threads) {
    const Index entries = pattern.rowptr[pattern.rows];
    Buffer<T> weight(entries), turned(entries), pull(entries), back(pattern.rows * channels);
    over_rows(pattern.rowptr, pattern.rows, logit_cost, 1.0, threads, [&](Index begin, Index end) {
        for (Index row = begin; row < end; ++row)
            for (Index slot = pattern.rowptr[row]; slot < pattern.rowptr[row + 1]; ++slot) {
                const T size = norm[row] * norm[pattern.col[slot]];
                weight.get()[slot] = grad[slot] / (size > floor ? size : floor);
                pull.get()[slot] = size > floor ? grad[slot] * cosine[slot] : T(0);
            }
    });
    over_rows(
        pattern.rowptr_t, pattern.rows, 2.0 * double(channels), 3.0 * double(channels), threads,
        [&](Index begin, Index end) {
            for (Index slot = pattern.rowptr_t[begin]; slot < pattern.rowptr_t[end]; ++slot)
                turned.get()[slot] = weight.get()[pattern.order[slot]];
            kernels<T>().product({pattern.rowptr, pattern.col, weight.get()}, begin, end, channels,
                                 x, grad_x);
            kernels<T>().product({pattern.rowptr_t, pattern.col_t, turned.get()}, begin, end,
                                 channels, x, back.get());
            for (Index row = begin; row < end; ++row) {
                T own = T(0);
                for (Index slot = pattern.rowptr[row]; slot < pattern.rowptr[row + 1]; ++slot)
                    own += pull.get()[slot];
                for (Index slot = pattern.rowptr_t[row]; slot < pattern.rowptr_t[row + 1]; ++slot)
                    own += pull.get()[pattern.order[slot]];
                // Where own is not 0, some norm product is above the floor, so this norm is not 0.
                const T scale = own == T(0) ? T(0) : own / (norm[row] * norm[row]);
                for (Index i = row * channels; i < (row + 1) * channels; ++i)
                    grad_x[i] += back.get()[i] - scale * x[i];
            }
        });
}

template <class T>
void attention_forward(const Attention<T>& problem, T* out) {
    const EntryPattern& pattern = problem.pattern;
    const double width = double(problem.heads * problem.channels);
    over_rows(pattern.rowptr, pattern.rows, width + logit_cost * double(problem.heads), width,
              problem.threads, [&](Index begin, Index end) {
                  kernels<T>().attend({{pattern.rowptr, pattern.col, problem.value},
                                       begin,
                                       end,
                                       pattern.rowptr[pattern.rows],
                                       problem.heads,
                                       problem.channels,
                                       problem.heads * (problem.channels + 2),
                                       problem.states,
                                       T(problem.slope),
                                       problem.keep,
                                       problem.share,
                                       problem.used,
                                       out});
              });
}

template <class T>
void attention_backward(const Attention<T>& problem, const T* out, const T* grad_out,
                        T* grad_states) {
    const EntryPattern& pattern = problem.pattern;
    const Index heads = problem.heads, width = heads * problem.channels;
    const Index entries = pattern.rowptr[pattern.rows], step = width + 2 * heads;
    Buffer<T> node(2 * pattern.rows * heads), grad_logit(heads * entries);
    AttentionGradTask<T> all = {pattern.rowptr_t,
                                pattern.col_t,
                                pattern.order,
                                0,
                                pattern.rows,
                                entries,
                                heads,
                                problem.channels,
                                step,
                                problem.states,
                                T(problem.slope),
                                problem.share,
                                problem.used,
                                out,
                                grad_out,
                                node.get(),
                                grad_logit.get(),
                                grad_states};
    over_rows(pattern.rowptr, pattern.rows, 0.0, double(width), problem.threads,
              [&](Index begin, Index end) { kernels<T>().attention_nodes(all, begin, end); });
    over_rows(pattern.rowptr_t, pattern.rows, 2.0 * double(width) + logit_cost * double(heads),
              double(width), problem.threads, [&](Index begin, Index end) {
                  AttentionGradTask<T> part = all;
                  part.begin = begin;
                  part.end = end;
                  kernels<T>().attention_back(part);
              });
    over_rows(pattern.rowptr, pattern.rows, double(heads), double(heads), problem.threads,
              [&](Index begin, Index end) {
                  for (Index row = begin; row < end; ++row)
                      for (Index head = 0; head < heads; ++head) {
                          const T* change = grad_logit.get() + head * entries;
                          T total = T(0);
                          for (Index slot = pattern.rowptr[row]; slot < pattern.rowptr[row + 1];
                               ++slot)
                              total += change[slot];
                          grad_states[row * step + width + heads + head] = total;
                      }
              });
}

#define ADGN_INSTANTIATE(T)                                                                        \
    template void edge_dots<T>(const EntryPattern&, Index, const T*, const T*, const T*, T, T*,    \
                               int);                                                               \
    template void cosine_backward<T>(const EntryPattern&, Index, const T*, const T*, T, const T*,  \
                                     const T*, T*, int);                                           \
    template void attention_forward<T>(const Attention<T>&, T*);                                   \
    template void attention_backward<T>(const Attention<T>&, const T*, const T*, T*);
ADGN_INSTANTIATE(float)
ADGN_INSTANTIATE(double)

}  // namespace adgn
