// The kernels of one instruction set; included by the kernels_*.cpp.
#pragma once

#include "dense.hpp"
#include "edge_kernels.hpp"
#include "gather.hpp"
#include "kernels.hpp"
#include "simd.hpp"
#include "tanh.hpp"

namespace adgn {
namespace ADGN_ISA {

// One vector of x + epsilon act(rate); what the backward pass will need goes to memory.
template <class T, Activation activation>
ADGN_INLINE void update(const T* rate, const T* x, T epsilon, T* x_next, T* activated,
                        std::uint8_t* active) {
    using V = Vector<T>;
    V t = load<T>(rate);
    if (activation == Activation::tanh) t = tanh<T>(t);
    if (activation == Activation::relu) t = t < V{} ? V{} : t;  // a NaN stays, as in torch
    if (activated) store<T>(activated, t);
    if (activation == Activation::relu && active) store_positive<T>(active, t);
    store<T>(x_next, load<T>(x) + splat<T>(epsilon) * t);
}

template <class T, Activation activation>
ADGN_INLINE void update_tile(const ForwardTask<T>& task, Index row, Index count, const T* rate) {
    const Index size = count * task.width;
    const T* x = task.x.data + (row - task.x.origin) * task.width;
    T* x_next = task.x_next.data + (row - task.x_next.origin) * task.width;
    T* activated = task.activated ? task.activated + row * task.width : nullptr;
    std::uint8_t* active = task.active ? task.active + row * task.width : nullptr;
    for (Index i = 0; i < size; i += lanes<T>)
        update<T, activation>(rate + i, x + i, task.epsilon, x_next + i,
                              activated ? activated + i : nullptr, active ? active + i : nullptr);
}

// What the rows of a tile gather of a matrix.
template <class T, class Task>
ADGN_INLINE void gather_matrix(const Task& task, const Matrix<T>& matrix,
                               const SortedRows<T>& sorted, Index row, Index stop, Rows<const T> x,
                               T* out) {
    if (!sorted.offset) {
        gather_rows<T>(matrix, row, stop, x, task.width, out);
        return;
    }
    const Index rows = row - task.begin, entries = matrix.rowptr[row] - matrix.rowptr[task.begin];
    const T* states = x.data + (task.begin - x.origin) * task.width;
    SortedRows<T> tile{sorted.place + rows, sorted.count + rows, sorted.offset + entries, nullptr};
    if (!sorted.value) {
        gather_sorted<T, false>(tile, stop - row, states, task.width, out);
        return;
    }
    tile.value = sorted.value + entries;
    gather_sorted<T, true>(tile, stop - row, states, task.width, out);
}

// What they gather of all, [matrices, tile_rows, width]; returns the number of matrices.
template <class T, class Task>
ADGN_INLINE Index gather_tile(const Task& task, Index row, Index stop, Rows<const T> x, T* out) {
    gather_matrix<T>(task, task.matrix, task.sorted.first, row, stop, x, out);
    if (!task.second.rowptr) return 1;
    gather_matrix<T>(task, task.second, task.sorted.second, row, stop, x,
                     out + tile_rows * task.width);
    return 2;
}

template <class T>
void forward(const ForwardTask<T>& task) {
    const Index width = task.width;
    T* gathered = task.scratch;
    T* rate = gathered + 2 * tile_rows * width;
    T* room = rate + tile_rows * width;
    for (Index row = task.begin; row < task.end; row += tile_rows) {
        const Index stop = row + tile_rows < task.end ? row + tile_rows : task.end;
        const Index count = stop - row;
        const Index matrices = gather_tile<T>(task, row, stop, task.x, gathered);
        const T* x = task.x.data + (row - task.x.origin) * width;
        product_tile<T>(whole_blocks(x, count, width, room), gathered, matrices, count,
                        task.channels, width, task.weights, task.bias, 0, rate);
        if (task.activation == Activation::tanh)
            update_tile<T, Activation::tanh>(task, row, count, rate);
        else if (task.activation == Activation::relu)
            update_tile<T, Activation::relu>(task, row, count, rate);
        else
            update_tile<T, Activation::identity>(task, row, count, rate);
    }
}

// One vector of epsilon g ⊙ act'.
template <class T>
ADGN_INLINE Vector<T> sloped(Activation activation, Vector<T> scaled, const T* activated,
                             const std::uint8_t* active) {
    if (activation == Activation::tanh) {
        const Vector<T> t = load<T>(activated);
        return scaled * (splat<T>(T(1)) - t * t);
    }
    return activation == Activation::relu ? where<T>(active, scaled) : scaled;
}

template <class T>
void slope(Index count, T epsilon, Activation activation, const T* g, const T* activated,
           const std::uint8_t* active, T* r) {
    for (Index i = 0; i < count; i += lanes<T>)
        store<T>(r + i, sloped<T>(activation, splat<T>(epsilon) * load<T>(g + i),
                                  activated ? activated + i : nullptr,
                                  active ? active + i : nullptr));
}

template <class T>
ADGN_INLINE void step_before(const BackwardTask<T>& task, Index row, Index count, const T* g) {
    const Index size = count * task.width;
    T* r = task.r_before.data + (row - task.r_before.origin) * task.width;
    const T* activated =
        task.activated_before ? task.activated_before + row * task.width : nullptr;
    const std::uint8_t* active =
        task.active_before ? task.active_before + row * task.width : nullptr;
    slope<T>(size, task.epsilon, task.activation, g, activated, active, r);
}

// The states of a tile before the step: where they lie, or in `room`, by the additions of the
// forward pass, and so equal to the states of the forward pass.
template <class T>
ADGN_INLINE const T* states_before(const BackwardTask<T>& task, Index row, Index count, T* room) {
    const T* x = task.x.data + (row - task.x.origin) * task.width;
    if (task.steps_since == 0) return x;
    const T* activated = task.activated + row * task.width;
    T* checkpoints = nullptr;
    if (task.checkpoints.data)
        checkpoints = task.checkpoints.data + (row - task.checkpoints.origin) * task.width;
    for (Index i = 0; i < count * task.width; i += lanes<T>) {
        Vector<T> state = load<T>(x + i);
        T* checkpoint = checkpoints ? checkpoints + i : nullptr;
        Index until_next = task.checkpoint_every;
        for (Index step = 0; step < task.steps_since; ++step) {
            state = state + splat<T>(task.epsilon) * load<T>(activated + step * task.step_size + i);
            if (checkpoint && --until_next == 0) {
                store<T>(checkpoint, state);
                checkpoint += task.checkpoint_size;
                until_next = task.checkpoint_every;
            }
        }
        store<T>(room + i, state);
    }
    return room;
}

// grad_weights += [r s q]ᵀ x and grad_bias += sum of r, for a tile; where r is null, it is zero.
template <class T, class Task>
ADGN_INLINE void add_gradients(const Task& task, const T* r, const T* returned, Index matrices,
                               const T* x, Index count) {
    const Index width = task.width;
    if (r) outer_tile<T>(r, x, count, task.channels, width, task.grad_weights);
    for (Index k = 0; k < matrices; ++k)
        outer_tile<T>(returned + k * tile_rows * width, x, count, task.channels, width,
                      task.grad_weights + (1 + k) * task.channels * width);
    for (Index j = 0; r && j < width; j += lanes<T>) {
        Vector<T> total = load<T>(task.grad_bias + j);
        for (Index i = 0; i < count; ++i) total += load<T>(r + i * width + j);
        store<T>(task.grad_bias + j, total);
    }
}

template <class T>
void backward(const BackwardTask<T>& task) {
    const Index width = task.width;
    T* returned = task.scratch;  // s = Aᵀ r, and q = Bᵀ r
    T* sum = returned + 2 * tile_rows * width;
    T* room = sum + tile_rows * width;
    for (Index row = task.begin, stop; row < task.end; row = stop) {
        const bool silent = row >= task.silent_from;
        const Index end = silent || task.silent_from > task.end ? task.end : task.silent_from;
        stop = row + tile_rows < end ? row + tile_rows : end;
        const Index count = stop - row;
        const T* r = task.r.data + (row - task.r.origin) * width;
        T* g = task.g.data + (row - task.g.origin) * width;
        const Index matrices = gather_tile<T>(task, row, stop, task.r, returned);
        const bool fits = fits_in_blocks(count);
        T* to = fits ? g : sum;
        if (!fits) std::memcpy(sum, g, std::size_t(count * width) * sizeof(T));
        if (silent)  // r M = 0
            product_tile<T>(returned, returned + tile_rows * width, matrices - 1, count,
                            task.channels, width, task.weights + task.channels * width, to, width,
                            to);
        else
            product_tile<T>(fits ? r : whole_blocks(r, count, width, room), returned, matrices,
                            count, task.channels, width, task.weights, to, width, to);
        if (!fits) std::memcpy(g, sum, std::size_t(count * width) * sizeof(T));
        if (task.grad_weights) {
            const T* x = states_before<T>(task, row, count, room);
            add_gradients<T>(task, silent ? nullptr : r, returned, matrices, x, count);
        }
        if (task.r_before.data) step_before<T>(task, row, count, g);
    }
}

template <class T>
ADGN_INLINE T* row_of(Rows<T> rows, Index row, Index width) {
    return rows.data + (row - rows.origin) * width;
}

// Vector i of the rows of a combination from `row` on.
template <class T>
ADGN_INLINE Vector<T> combined(const Combination<T>& sum, Index row, Index width, Index i) {
    Vector<T> total = load<T>(row_of(sum.base, row, width) + i);
    for (int k = 0; k < sum.count; ++k)
        total += splat<T>(sum.factor[k]) * load<T>(row_of(sum.rate[k], row, width) + i);
    return total;
}

template <class T, Activation activation>
ADGN_INLINE void finish_rate(const RateTask<T>& task, Index row, Index count, const T* rate) {
    using V = Vector<T>;
    const Index width = task.width;
    T* kept = task.rate.data ? row_of(task.rate, row, width) : nullptr;
    T* velocity = task.velocity.data ? row_of(task.velocity, row, width) : nullptr;
    T* next = row_of(task.next, row, width);
    for (Index i = 0; i < count * width; i += lanes<T>) {
        V t = load<T>(rate + i);
        if (activation == Activation::tanh) t = tanh<T>(t);
        if (activation == Activation::relu) t = t < V{} ? V{} : t;
        if (kept) store<T>(kept + i, t);
        const V before = combined<T>(task.result, row, width, i);
        if (velocity) {
            const V moved = load<T>(velocity + i) + splat<T>(task.own) * t;
            store<T>(velocity + i, moved);
            store<T>(next + i, before + splat<T>(task.position) * moved);
        } else {
            store<T>(next + i, before + splat<T>(task.own) * t);
        }
    }
}

template <class T>
void rate(const RateTask<T>& task) {
    const Index width = task.width;
    T* gathered = task.scratch;
    T* found = gathered + 2 * tile_rows * width;
    T* room = found + tile_rows * width;
    for (Index row = task.begin; row < task.end; row += tile_rows) {
        const Index stop = row + tile_rows < task.end ? row + tile_rows : task.end;
        const Index count = stop - row;
        const Index matrices = gather_tile<T>(task, row, stop, task.x, gathered);
        const T* x = whole_blocks(row_of(task.x, row, width), count, width, room);
        product_tile<T>(x, gathered, matrices, count, task.channels, width, task.weights,
                        task.bias, 0, found);
        if (task.activation == Activation::tanh)
            finish_rate<T, Activation::tanh>(task, row, count, found);
        else if (task.activation == Activation::relu)
            finish_rate<T, Activation::relu>(task, row, count, found);
        else
            finish_rate<T, Activation::identity>(task, row, count, found);
    }
}

// One vector of g ⊙ act', from what the activation returned.
template <class T>
ADGN_INLINE Vector<T> sloped_by_rate(Activation activation, Vector<T> g, const T* rate) {
    if (activation == Activation::identity) return g;
    const Vector<T> t = load<T>(rate);
    if (activation == Activation::tanh) return g * (splat<T>(T(1)) - t * t);
    return t > Vector<T>{} ? g : Vector<T>{};
}

// The gradients in the rates that made x, and r of the rate before, for a tile.
template <class T>
ADGN_INLINE void spread(const AdjointTask<T>& task, Index row, Index count, const T* v) {
    using V = Vector<T>;
    const Index width = task.width;
    T* r_before = task.r_before.data ? row_of(task.r_before, row, width) : nullptr;
    const T* rate = task.rate_before.data ? row_of(task.rate_before, row, width) : nullptr;
    T* velocity = task.velocity.data ? row_of(task.velocity, row, width) : nullptr;
    for (Index i = 0; i < count * width; i += lanes<T>) {
        const V given = load<T>(v + i);
        V first = V{};
        if (velocity) {
            const V moved = load<T>(velocity + i) + splat<T>(task.position) * given;
            store<T>(velocity + i, moved);
            first = splat<T>(task.factor[0]) * moved;
        }
        for (int k = 0; k < task.count; ++k) {
            T* to = row_of(task.grad_rate[k], row, width) + i;
            V sum = splat<T>(task.factor[k]) * given;
            if (!task.fresh[k]) sum += load<T>(to);
            if (k == 0) first = sum;
            if (k > 0 || !r_before) store<T>(to, sum);
        }
        if (r_before)
            store<T>(r_before + i, sloped_by_rate<T>(task.activation, first,
                                                     rate ? rate + i : nullptr));
    }
}

template <class T>
void adjoint(const AdjointTask<T>& task) {
    const Index width = task.width;
    T* returned = task.scratch;  // s = Aᵀ r, and q = Bᵀ r
    T* v = returned + 2 * tile_rows * width;
    T* room = v + tile_rows * width;
    T* zero = room + tile_rows * width;
    for (Index row = task.begin; row < task.end; row += tile_rows) {
        const Index stop = row + tile_rows < task.end ? row + tile_rows : task.end;
        const Index count = stop - row, size = count * width;
        T* g = row_of(task.g, row, width);
        if (!task.r.data) {
            spread<T>(task, row, count, g);
            continue;
        }
        const T* r = row_of(task.r, row, width);
        const Index matrices = gather_tile<T>(task, row, stop, task.r, returned);
        std::memset(zero, 0, std::size_t(width) * sizeof(T));
        product_tile<T>(whole_blocks(r, count, width, room), returned, matrices, count,
                        task.channels, width, task.weights, zero, 0, v);
        for (Index i = 0; i < size; i += lanes<T>)
            store<T>(g + i, load<T>(g + i) + load<T>(v + i));
        if (task.grad_weights) {
            const T* x = row_of(task.x.base, row, width);
            if (task.x.count > 0) {
                for (Index i = 0; i < size; i += lanes<T>)
                    store<T>(room + i, combined<T>(task.x, row, width, i));
                x = room;
            }
            add_gradients<T>(task, r, returned, matrices, x, count);
        }
        if (task.count > 0 || task.r_before.data)
            spread<T>(task, row, count, task.starts_step ? g : v);
    }
}

// For any count: the last few numbers go through a vector of their own.
template <class T>
void tanh_array(Index count, const T* x, T* out) {
    Index i = 0;
    for (; i + lanes<T> <= count; i += lanes<T>) store<T>(out + i, tanh<T>(load<T>(x + i)));
    if (i < count) {
        T rest[lanes<T>] = {};
        std::memcpy(rest, x + i, std::size_t(count - i) * sizeof(T));
        store<T>(rest, tanh<T>(load<T>(rest)));
        std::memcpy(out + i, rest, std::size_t(count - i) * sizeof(T));
    }
}

template <class T>
constexpr Kernels<T> table() {
    return {forward<T>, backward<T>,   rate<T>, adjoint<T>, slope<T>,           product<T>,
            tanh_array<T>, dots<T>, attend<T>, attention_nodes<T>, attention_back<T>};
}

extern const Kernels<float> single_kernels;
extern const Kernels<double> double_kernels;
const Kernels<float> single_kernels = table<float>();
const Kernels<double> double_kernels = table<double>();

}  // namespace ADGN_ISA
}  // namespace adgn
