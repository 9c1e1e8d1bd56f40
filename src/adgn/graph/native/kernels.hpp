// What the drivers ask of the vector code: work on a range of rows, once per instruction set.
//
// States are [rows, width] with width = channels rounded up to 64 bytes, so that no kernel has a
// tail; the padding is zero and stays zero.
#pragma once

#include <cstdint>

namespace adgn {

using Index = std::int64_t;

enum class Activation : int { identity = 0, tanh = 1, relu = 2 };

// A sparse matrix in CSR. Whoever calls has checked that every index is in range.
template <class T>
struct Matrix {
    const std::int32_t* rowptr;
    const std::int32_t* col;
    const T* value;
};

// Rows of a [rows, width] array of which the first one kept is `origin`.
template <class T>
struct Rows {
    T* data;
    Index origin;
};

// The rows of a block as they are gathered, for all steps: tile by tile (see tile_rows), and within a
// tile those with equally many entries one after the other, so that the processor foresees where
// each of them ends.
template <class T>
struct SortedRows {
    const std::int32_t* place;   // [rows]: of the row in its tile
    const std::int32_t* count;   // [rows]: how many entries it has
    const std::int32_t* offset;  // [entries]: where the state of the column begins; null: not sorted
    const T* value;              // [entries]; null where all of them are 1
};

// The same for both matrices; that of the second one is empty where there is none.
template <class T>
struct SortedBlock {
    SortedRows<T> first, second;
};

// x_next = x + epsilon act(x Mᵀ + A x Vᵀ + b) for the rows begin … end - 1; with a second matrix B
// also + B x Uᵀ inside of act. Without one its `rowptr` is null.
template <class T>
struct ForwardTask {
    Matrix<T> matrix, second;
    SortedBlock<T> sorted;
    Index begin, end;
    Index channels, width;
    const T* weights;     // [(1 + matrices) channels, width]: Mᵀ, then Vᵀ, then Uᵀ
    const T* bias;        // [width]
    T epsilon;
    Activation activation;
    Rows<const T> x;
    Rows<T> x_next;
    T* activated;         // [all rows, width]: act(...), or null
    std::uint8_t* active; // [all rows, width]: whether act(...) > 0, or null
    T* scratch;           // [scratch_size(width)]
};

// One step back. With r = epsilon g ⊙ act'(…) of all rows given, s = Aᵀ r and q = Bᵀ r:
// g += r M + s V + q U, grad_weights += [r s q]ᵀ x, grad_bias += sum of r; then r of the step
// before.
template <class T>
struct BackwardTask {
    Matrix<T> matrix, second;  // the transposes
    SortedBlock<T> sorted;
    Index begin, end;
    Index channels, width;
    const T* weights;     // [(1 + matrices) channels, width]: M, then V, then U
    T epsilon;
    Activation activation;
    Rows<const T> r;
    Index silent_from;    // the rows from here on have r = 0
    // The states that the step started from; for tanh those `steps_since` steps earlier, and what
    // the activation returned in these steps, each `step_size` numbers after the one before. Unless
    // `checkpoints.data` is null, every `checkpoint_every`-th of the states between is stored there,
    // `checkpoint_size` numbers after the one before.
    Rows<const T> x;
    const T* activated;
    Index steps_since, step_size;
    Rows<T> checkpoints;
    Index checkpoint_every, checkpoint_size;
    Rows<T> g;
    T* grad_weights;      // like weights, or null where they are not needed
    T* grad_bias;         // [width], or null
    // The step before; `r_before.data` is null where there is none.
    Rows<T> r_before;
    const T* activated_before;    // tanh; [all rows, width]
    const std::uint8_t* active_before;  // relu; [all rows, width]
    T* scratch;                   // [scratch_size(width)]
};

// So many rates take part in a combination at most.
constexpr int max_history = 8;

// base + Σ factor rate, row by row.
template <class T>
struct Combination {
    Rows<const T> base;
    int count;
    Rows<const T> rate[max_history];
    T factor[max_history];
};

// rate = act(x Mᵀ + A x Vᵀ + b) for the rows begin … end - 1 (with a second matrix as above), and
// next = result + own rate. With a velocity: velocity += own rate, and next = result + position
// velocity.
template <class T>
struct RateTask {
    Matrix<T> matrix, second;
    SortedBlock<T> sorted;
    Index begin, end;
    Index channels, width;
    const T* weights;     // [(1 + matrices) channels, width]: Mᵀ, then Vᵀ, then Uᵀ
    const T* bias;        // [width]
    Activation activation;
    Rows<const T> x;
    Rows<T> rate;         // data is null where nobody wants it
    Combination<T> result;
    T own, position;
    Rows<T> velocity;     // data is null where there is none
    Rows<T> next;
    T* scratch;           // [scratch_size(width)]
};

// Back through one rate. With r = grad_rate ⊙ act'(…) of all rows given, s = Aᵀ r and q = Bᵀ r:
// v = r M + s V + q U, g += v, grad_weights += [r s q]ᵀ x, grad_bias += sum of r. Where r.data is
// null, none of that. Then the gradients in the rates that made x: += factor (g where x was the start of a
// step, else v); and r of the rate before, which is the first of them.
template <class T>
struct AdjointTask {
    Matrix<T> matrix, second;  // the transposes
    SortedBlock<T> sorted;
    Index begin, end;
    Index channels, width;
    const T* weights;     // [(1 + matrices) channels, width]: M, then V, then U
    Activation activation;
    Rows<const T> r;
    Combination<T> x;     // where the rate was taken
    Rows<T> g;
    bool starts_step;
    T* grad_weights;      // as weights, or null where they are not needed
    T* grad_bias;         // [width], or null
    int count;
    Rows<T> grad_rate[max_history];
    T factor[max_history];
    bool fresh[max_history];  // nothing is there yet to add to
    // With a velocity instead: its gradient += position g, and that in the rate before is factor[0]
    // times this.
    T position;
    Rows<T> velocity;
    Rows<T> r_before;     // data is null where there is none
    Rows<const T> rate_before;
    T* scratch;           // [scratch_size(width)]
};

// out[s] = left[u] · right[j] for each entry s = (u, j) of the rows begin … end - 1; with norms
// divided by max(norm[u] norm[j], floor).
template <class T>
struct DotTask {
    const std::int32_t* rowptr;
    const std::int32_t* col;
    Index begin, end;
    Index channels;
    const T* left;
    const T* right;
    const T* norm;        // null for the products alone
    T floor;
    T* out;
};

// Attention for the rows begin … end - 1: share[u, j] ∝ value[u, j] exp LeakyReLU(target[u] +
// source[j]), which sum to one over a row, and out[u] = Σ share[u, j] sent[j], head by head.
template <class T>
struct AttentionTask {
    Matrix<T> matrix;
    Index begin, end;
    Index entries, heads, channels, step;
    const T* states;      // [rows, step]: sent [heads, channels], source [heads], target [heads]
    T slope;              // of LeakyReLU
    const T* keep;        // [heads, entries]: what the shares are multiplied with, or null
    T* share;             // [heads, entries]
    T* used;              // share times keep; without keep the same array
    T* out;               // [rows, heads, channels]
};

// Back through it, for the sources begin … end - 1: rows of the transpose, slot s of which is entry
// order[s].
template <class T>
struct AttentionGradTask {
    const std::int32_t* rowptr;
    const std::int32_t* col;
    const std::int32_t* order;
    Index begin, end;
    Index entries, heads, channels, step;
    const T* states;
    T slope;
    const T* share;
    const T* used;
    const T* out;
    const T* grad_out;
    T* node;              // [rows, heads, 2]: gradient · output, and the logit as a target
    T* grad_logit;        // [heads, entries]
    T* grad_states;       // [rows, step]; the part of `target` is left to others
};

template <class T>
struct Kernels {
    void (*forward)(const ForwardTask<T>&);
    void (*backward)(const BackwardTask<T>&);
    void (*rate)(const RateTask<T>&);
    void (*adjoint)(const AdjointTask<T>&);
    // r = epsilon g ⊙ act'(…) for `count` numbers.
    void (*slope)(Index count, T epsilon, Activation, const T* g, const T* activated,
                  const std::uint8_t* active, T* r);
    // out = A x for the rows begin … end - 1; x and out are [rows, channels], of any width.
    void (*product)(const Matrix<T>&, Index begin, Index end, Index channels, const T* x, T* out);
    void (*tanh)(Index count, const T* x, T* out);
    void (*dots)(const DotTask<T>&);
    void (*attend)(const AttentionTask<T>&);
    // `node` of the rows begin … end - 1, before the other.
    void (*attention_nodes)(const AttentionGradTask<T>&, Index begin, Index end);
    void (*attention_back)(const AttentionGradTask<T>&);
};

template <class T>
const Kernels<T>& kernels();
const char* instruction_set();

// Tiles of so many rows at most are worked on at once: their states stay in the first-level cache.
constexpr Index tile_rows = 48;

template <class T>
constexpr Index padded(Index channels) {
    constexpr Index step = 64 / sizeof(T);
    return (channels + step - 1) / step * step;
}

// How many numbers a kernel needs as room for its tile: four arrays and a row.
constexpr Index scratch_size(Index width) { return (4 * tile_rows + 1) * width; }

}  // namespace adgn
