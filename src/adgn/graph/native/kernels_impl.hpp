// The kernels of one instruction set; included by the kernels_*.cpp.
#pragma once

#include "dense.hpp"
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

// What the rows of a tile gather, [matrices, tile_rows, width]; returns the number of matrices.
template <class T, class Task>
ADGN_INLINE Index gather_tile(const Task& task, Index row, Index stop, Rows<const T> x, T* out) {
    gather_rows<T>(task.matrix, row, stop, x, task.width, out);
    if (!task.second.rowptr) return 1;
    gather_rows<T>(task.second, row, stop, x, task.width, out + tile_rows * task.width);
    return 2;
}

template <class T>
void forward(const ForwardTask<T>& task) {
    const Index width = task.width;
    T* gathered = task.scratch;
    T* rate = gathered + 2 * tile_rows * width;
    for (Index row = task.begin; row < task.end; row += tile_rows) {
        const Index stop = row + tile_rows < task.end ? row + tile_rows : task.end;
        const Index count = stop - row;
        const Index matrices = gather_tile<T>(task, row, stop, task.x, gathered);
        product_tile<T>(task.x.data + (row - task.x.origin) * width, gathered, matrices, count,
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
        for (Index step = 0; step < task.steps_since; ++step) {
            state = state + splat<T>(task.epsilon) * load<T>(activated + step * task.step_size + i);
            if (checkpoints && (step + 1) % task.checkpoint_every == 0)
                store<T>(checkpoints + step / task.checkpoint_every * task.checkpoint_size + i,
                         state);
        }
        store<T>(room + i, state);
    }
    return room;
}

template <class T>
void backward(const BackwardTask<T>& task) {
    const Index width = task.width;
    T* returned = task.scratch;  // s = Aᵀ r, and q = Bᵀ r
    T* sum = returned + 2 * tile_rows * width;
    T* room = sum + tile_rows * width;
    for (Index row = task.begin; row < task.end; row += tile_rows) {
        const Index stop = row + tile_rows < task.end ? row + tile_rows : task.end;
        const Index count = stop - row;
        const T* r = task.r.data + (row - task.r.origin) * width;
        T* g = task.g.data + (row - task.g.origin) * width;
        const Index matrices = gather_tile<T>(task, row, stop, task.r, returned);
        std::memcpy(sum, g, std::size_t(count * width) * sizeof(T));
        product_tile<T>(r, returned, matrices, count, task.channels, width, task.weights, sum,
                        width, sum);
        std::memcpy(g, sum, std::size_t(count * width) * sizeof(T));
        if (task.grad_weights) {
            const T* x = states_before<T>(task, row, count, room);
            outer_tile<T>(r, x, count, task.channels, width, task.grad_weights);
            for (Index k = 0; k < matrices; ++k)
                outer_tile<T>(returned + k * tile_rows * width, x, count, task.channels, width,
                              task.grad_weights + (1 + k) * task.channels * width);
        }
        if (task.grad_bias) {
            for (Index i = 0; i < count; ++i)
                for (Index j = 0; j < width; j += lanes<T>)
                    store<T>(task.grad_bias + j,
                             load<T>(task.grad_bias + j) + load<T>(r + i * width + j));
        }
        if (task.r_before.data) step_before<T>(task, row, count, sum);
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
    return {forward<T>, backward<T>, slope<T>, product<T>, tanh_array<T>};
}

extern const Kernels<float> single_kernels;
extern const Kernels<double> double_kernels;
const Kernels<float> single_kernels = table<float>();
const Kernels<double> double_kernels = table<double>();

}  // namespace ADGN_ISA
}  // namespace adgn
