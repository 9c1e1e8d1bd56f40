// Several Euler steps at once, and their gradient.
#pragma once

#include "kernels.hpp"

namespace adgn {

// All pointers are to dense row-major arrays. `width` = padded<T>(channels).
template <class T>
struct Integration {
    Matrix<T> matrix;      // forward: A; backward: its transpose
    Matrix<T> second;      // the same of another matrix B, whose rowptr is null where there is none
    Index nodes;
    Index channels;
    Index steps;
    Index weight_sets;     // 1: shared by all steps; steps: one set per step
    const T* w_self;      // [weight_sets, channels, channels]
    const T* w_neigh;     // [weight_sets, matrices, channels, channels]: V, and U with a second one
    const T* bias;         // [weight_sets, channels], or null
    double epsilon;
    int activation;
    const Index* block_ptr;  // [blocks + 1]: the rows of block-diagonal parts, or null
    Index blocks;
    int threads;
    // [steps]: how many of the first rows each step computes, never more than the one before and
    // `nodes`; the rows have entries only where the step before computed. Null: all. Not with blocks.
    const Index* step_rows;

    Index matrices() const { return second.rowptr ? 2 : 1; }
    // How many rows there are after so many steps.
    Index rows_after(Index count) const {
        return step_rows && count > 0 ? step_rows[count - 1] : nodes;
    }
};

// What a forward pass keeps for the backward pass; all null where no gradient is needed.
template <class T>
struct Kept {
    T* states;              // [steps, nodes, width]: act(…) for tanh, else x before each step
    std::uint8_t* active;   // [steps, nodes, width]: relu alone
    const T* first;         // x before the first step, as `x` below; tanh alone, backward alone.
                            // For step_backward without `states`: x before the step.
};

// x, out: [nodes, row_step] of which the first `channels` columns count; row_step = channels with
// blocks, and width without. spare: [nodes, width], without blocks only, and where no x is kept.
template <class T>
void integrate_forward(const Integration<T>&, const T* x, Index row_step, T* out, T* spare,
                       const Kept<T>&);

// How many of the states the backward pass stores for tanh, without blocks.
constexpr Index checkpoint_count = 3;

// grad_out (of rows_after(steps) rows), grad_x as x and out above. spare: [2, nodes, width], for tanh [2 + checkpoint_count,
// nodes, width], without blocks only. The gradients of the weights are added to what is there; null
// where they are not needed.
template <class T>
void integrate_backward(const Integration<T>&, const T* grad_out, Index row_step, T* grad_x,
                        T* spare, const Kept<T>&, T* grad_w_self, T* grad_w_neigh, T* grad_bias);

// The same in pieces, without blocks and step_rows: one step of some rows at a time, for who has
// something to do between them. The matrix may have more columns than rows: x and r then have so
// many rows more, whose numbers come from elsewhere.

// x_next of the rows begin … end - 1 by step `step`; of `kept` what the step keeps.
template <class T>
void step_forward(const Integration<T>&, Index step, Index begin, Index end, const T* x, T* x_next,
                  const Kept<T>&);

// g = grad_out, [nodes, width], and r of the last step; see BackwardTask.
template <class T>
void start_backward(const Integration<T>&, const T* grad_out, T* g, T* r, const Kept<T>&);

// Back through step `step` for the rows begin … end - 1: g, gradients of weights as above, and
// r_before of the step before. checkpoints: [checkpoint_count, nodes, width] for tanh, which the
// last step fills; null where gradients of weights are not needed.
template <class T>
void step_backward(const Integration<T>&, Index step, Index begin, Index end, T* g, const T* r,
                   T* r_before, T* checkpoints, const Kept<T>&, T* grad_w_self, T* grad_w_neigh,
                   T* grad_bias);

}  // namespace adgn
