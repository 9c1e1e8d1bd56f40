// Kernels that work edge by edge: dot products of two rows, and attention.
#pragma once

#include "gather.hpp"
#include "kernels.hpp"
#include "simd.hpp"
#include "tanh.hpp"

namespace adgn {
namespace ADGN_ISA {

// A vector's lanes made one number, halving the vector again and again.
template <class T, int bytes>
struct Lanes {
    typedef T Whole __attribute__((vector_size(bytes)));
    typedef T Half __attribute__((vector_size(bytes / 2)));
    template <class Join>
    ADGN_INLINE T joined(Whole v, Join join) {
        Half low, high;
        std::memcpy(&low, &v, sizeof low);
        std::memcpy(&high, reinterpret_cast<const char*>(&v) + sizeof low, sizeof high);
        return Lanes<T, bytes / 2>::joined(join(low, high), join);
    }
};
template <>
struct Lanes<float, 16> {
    typedef float Whole __attribute__((vector_size(16)));
    template <class Join>
    ADGN_INLINE float joined(Whole v, Join join) {
        return join(join(v[0], v[2]), join(v[1], v[3]));
    }
};
template <>
struct Lanes<double, 16> {
    typedef double Whole __attribute__((vector_size(16)));
    template <class Join>
    ADGN_INLINE double joined(Whole v, Join join) {
        return join(v[0], v[1]);
    }
};

template <class T>
ADGN_INLINE T sum_of_lanes(Vector<T> v) {
    return Lanes<T, ADGN_VECTOR_BYTES>::joined(v, [](auto a, auto b) { return a + b; });
}

template <class T>
ADGN_INLINE T top_of_lanes(Vector<T> v) {
    return Lanes<T, ADGN_VECTOR_BYTES>::joined(v, [](auto a, auto b) { return a > b ? a : b; });
}

// a · b for rows of any width.
template <class T>
ADGN_INLINE T dot(const T* a, const T* b, Index width) {
    Vector<T> sum = {};
    Index j = 0;
    for (; j + lanes<T> <= width; j += lanes<T>) sum += load<T>(a + j) * load<T>(b + j);
    T total = sum_of_lanes<T>(sum);
    for (; j < width; ++j) total += a[j] * b[j];
    return total;
}

// A row of `groups` vectors in registers, the last of which overlaps the one before where the width
// is no multiple of a vector: what both hold is zero in the last one, so that it counts once.
template <class T, int groups>
struct HeldRow {
    Vector<T> part[groups];
    Index tail;

    ADGN_INLINE HeldRow of(const T* row, Index width) {
        HeldRow held;
        held.tail = width - lanes<T>;
#pragma GCC unroll 8
        for (int j = 0; j < groups; ++j)
            held.part[j] = load<T>(row + place<T, groups>(j, held.tail));
        const Index twice = (groups - 1) * lanes<T> - held.tail;
        held.part[groups - 1] = from_lane<T>(twice, held.part[groups - 1]);
        return held;
    }
};

template <class T, int groups>
ADGN_INLINE void dots_held(const DotTask<T>& task, Index row, Index ahead_end) {
    using V = Vector<T>;
    const Index width = task.channels;
    const auto held = HeldRow<T, groups>::of(task.left + row * width, width);
    for (Index slot = task.rowptr[row]; slot < task.rowptr[row + 1]; ++slot) {
        if (slot + prefetch_distance < ahead_end)
            prefetch_vectors<T, groups>(
                task.right + task.col[slot + prefetch_distance] * width, held.tail);
        const T* other = task.right + task.col[slot] * width;
        V sum = held.part[0] * load<T>(other + place<T, groups>(0, held.tail));
#pragma GCC unroll 8
        for (int j = 1; j < groups; ++j)
            sum += held.part[j] * load<T>(other + place<T, groups>(j, held.tail));
        task.out[slot] = sum_of_lanes<T>(sum);
    }
}

template <class T>
void dots(const DotTask<T>& task) {
    const Index width = task.channels, vectors = (width + lanes<T> - 1) / lanes<T>;
    const Index ahead_end = task.rowptr[task.end];
    for (Index row = task.begin; row < task.end; ++row) {
        if (width < lanes<T> || vectors > 4) {
            for (Index slot = task.rowptr[row]; slot < task.rowptr[row + 1]; ++slot)
                task.out[slot] =
                    dot<T>(task.left + row * width, task.right + task.col[slot] * width, width);
        } else if (vectors == 1) {
            dots_held<T, 1>(task, row, ahead_end);
        } else if (vectors == 2) {
            dots_held<T, 2>(task, row, ahead_end);
        } else if (vectors == 3) {
            dots_held<T, 3>(task, row, ahead_end);
        } else {
            dots_held<T, 4>(task, row, ahead_end);
        }
        if (!task.norm) continue;
        for (Index slot = task.rowptr[row]; slot < task.rowptr[row + 1]; ++slot) {
            const T size = task.norm[row] * task.norm[task.col[slot]];
            task.out[slot] /= size > task.floor ? size : task.floor;
        }
    }
}

// exp(x) for x <= 0, and 0 below the smallest normal number; a NaN stays. The parts are tanh's.
template <class T>
ADGN_INLINE Vector<T> exp_of_negative(Vector<T> x) {
    using C = ExpConstants<T>;
    using V = Vector<T>;
    const V low = splat<T>(C::least_exponent);
    const V bounded = x < low ? low : x;
    const V shifted = bounded * splat<T>(C::log2e) + splat<T>(C::shifter);
    const V n = shifted - splat<T>(C::shifter);
    V r = bounded - n * splat<T>(C::ln2_high);
    r = r - n * splat<T>(C::ln2_low);
    T factorial = T(1);
    for (int k = 2; k <= C::terms; ++k) factorial *= T(k);
    V sum = splat<T>(T(1) / factorial);
#pragma GCC unroll 16
    for (int k = C::terms; k > 0; --k) {
        factorial /= T(k);
        sum = sum * r + splat<T>(T(1) / factorial);
    }
    const Bits<T> exponent = (bits_of<T>(shifted) + C::exponent_bias) << C::mantissa_bits;
    const V result = from_bits<T>(exponent) * sum;
    return x < low ? V{} : result;
}

// In place, for any count: the last few numbers go through a vector of their own.
template <class T>
ADGN_INLINE void exp_array(T* x, Index count) {
    Index i = 0;
    for (; i + lanes<T> <= count; i += lanes<T>) store<T>(x + i, exp_of_negative<T>(load<T>(x + i)));
    if (i < count) {
        T rest[lanes<T>] = {};
        std::memcpy(rest, x + i, std::size_t(count - i) * sizeof(T));
        store<T>(rest, exp_of_negative<T>(load<T>(rest)));
        std::memcpy(x + i, rest, std::size_t(count - i) * sizeof(T));
    }
}

// The shares of one row of at most `groups` vectors of entries, in registers. Where `inside`, arrays
// of entries go on for whole vectors: what lies behind the row may be read, and written as it will
// be written again.
template <class T, int groups>
ADGN_INLINE void softmax_short(const AttentionTask<T>& task, const T* source, T own, Index first,
                               Index count, bool inside, T* share) {
    using V = Vector<T>;
    constexpr Index room = groups * lanes<T>;
    const std::int32_t* col = task.matrix.col + first;
    const T* value = task.matrix.value + first;
    std::int32_t own_col[room];
    T own_value[room];
    if (!inside) {
        for (Index i = 0; i < room; ++i) {
            own_col[i] = i < count ? col[i] : 0;
            own_value[i] = i < count ? value[i] : T(0);
        }
        col = own_col;
        value = own_value;
    }
    const V least = splat<T>(-__builtin_inf());
    V logit[groups], weight[groups], top = least, total = {};
#pragma GCC unroll 2
    for (int k = 0; k < groups; ++k) {
        V heard;  // lane by lane: stored numbers could not be loaded as a vector at once
#pragma GCC unroll 16
        for (int i = 0; i < lanes<T>; ++i) heard[i] = source[col[k * lanes<T> + i] * task.step];
        heard += own;
        weight[k] = to_lane<T>(count - k * lanes<T>, load<T>(value + k * lanes<T>));
        logit[k] = weight[k] == V{} ? least : heard > V{} ? heard : heard * task.slope;
        top = logit[k] > top ? logit[k] : top;
    }
    T highest = top_of_lanes<T>(top);
    if (highest == -__builtin_inf()) highest = T(0);  // no neighbour with a weight
#pragma GCC unroll 2
    for (int k = 0; k < groups; ++k) {
        logit[k] = weight[k] * exp_of_negative<T>(logit[k] - highest);
        total += logit[k];
    }
    const T sum = sum_of_lanes<T>(total), scale = sum == T(0) ? T(1) : T(1) / sum;
    T* out = inside ? share + first : own_value;
#pragma GCC unroll 2
    for (int k = 0; k < groups; ++k) store<T>(out + k * lanes<T>, logit[k] * scale);
    if (inside) return;
    for (Index i = 0; i < count; ++i) share[first + i] = own_value[i];
}

// The same for a row of any length.
template <class T>
void softmax_long(const AttentionTask<T>& task, const T* source, T own, Index first, Index count,
                  T* share) {
    const std::int32_t* col = task.matrix.col + first;
    const T* value = task.matrix.value + first;
    const T least = -__builtin_inf();
    const T leak[2] = {task.slope, T(1)};  // looked up: half of the branches would be mispredicted
    share += first;
    T top = least, total = T(0);
    for (Index i = 0; i < count; ++i) {
        T logit = own + source[col[i] * task.step];
        logit *= leak[logit > T(0)];
        share[i] = value[i] == T(0) ? least : logit;
        top = share[i] > top ? share[i] : top;
    }
    if (top != least)
        for (Index i = 0; i < count; ++i) share[i] -= top;
    exp_array<T>(share, count);
    for (Index i = 0; i < count; ++i) {
        share[i] *= value[i];
        total += share[i];
    }
    const T scale = total == T(0) ? T(1) : T(1) / total;
    for (Index i = 0; i < count; ++i) share[i] *= scale;
}

// The shares of one head for the rows begin … end - 1.
template <class T>
ADGN_INLINE void softmax_rows(const AttentionTask<T>& task, Index head, Index begin, Index end) {
    const std::int32_t* rowptr = task.matrix.rowptr;
    const T* source = task.states + task.heads * task.channels + head;
    const T* target = source + task.heads;
    T* share = task.share + head * task.entries;
    const Index writable = rowptr[task.end];
    for (Index row = begin; row < end; ++row) {
        const Index first = rowptr[row], count = rowptr[row + 1] - first;
        const T own = target[row * task.step];
        if (count <= lanes<T>)
            softmax_short<T, 1>(task, source, own, first, count, first + lanes<T> <= writable,
                                share);
        else if (count <= 2 * lanes<T>)
            softmax_short<T, 2>(task, source, own, first, count, first + 2 * lanes<T> <= writable,
                                share);
        else
            softmax_long<T>(task, source, own, first, count, share);
    }
    if (!task.keep) return;
    const T* keep = task.keep + head * task.entries;
    T* used = task.used + head * task.entries;
    for (Index slot = rowptr[begin]; slot < rowptr[end]; ++slot)
        used[slot] = share[slot] * keep[slot];
}

template <class T>
void attend(const AttentionTask<T>& task) {
    const Index channels = task.channels, width = task.heads * channels;
    const Index ahead_end = task.matrix.rowptr[task.end];
    for (Index row = task.begin; row < task.end; row += tile_rows) {
        const Index stop = row + tile_rows < task.end ? row + tile_rows : task.end;
        for (Index head = 0; head < task.heads; ++head) {
            softmax_rows<T>(task, head, row, stop);
            const Matrix<T> shares = {task.matrix.rowptr, task.matrix.col,
                                      task.used + head * task.entries};
            const Rows<const T> sent = {task.states + head * channels, 0};
            T* out = task.out + head * channels;
            for (Index i = row; i < stop; ++i)
                gather_one<T>(shares, i, ahead_end, sent, channels, task.step, out + i * width);
        }
    }
}

// What the backward pass needs of each node: gradient · output, and its logit as a target.
template <class T>
void attention_nodes(const AttentionGradTask<T>& task, Index begin, Index end) {
    const Index channels = task.channels, width = task.heads * channels;
    for (Index row = begin; row < end; ++row)
        for (Index head = 0; head < task.heads; ++head) {
            const Index at = row * width + head * channels;
            T* node = task.node + 2 * (row * task.heads + head);
            node[0] = dot<T>(task.grad_out + at, task.out + at, channels);
            node[1] = task.states[row * task.step + width + task.heads + head];
        }
}

// The gradient in one logit, before LeakyReLU: where `node` is its target's.
template <class T>
ADGN_INLINE T logit_gradient(const AttentionGradTask<T>& task, const T* node, T source, T share,
                             T used, T product) {
    const T leak[2] = {task.slope, T(1)};
    return (used * product - share * node[0]) * leak[node[1] + source > T(0)];
}

// One source of one head: its entries are a row of the transpose.
template <class T, int groups>
ADGN_INLINE void attention_back_held(const AttentionGradTask<T>& task, Index row, Index head) {
    using V = Vector<T>;
    const Index channels = task.channels, width = task.heads * channels;
    const T* states = task.states + row * task.step;
    T* grad_states = task.grad_states + row * task.step;
    const auto held = HeldRow<T, groups>::of(states + head * channels, channels);
    const T source = states[width + head];
    const T* grad_out = task.grad_out + head * channels;
    const T* share = task.share + head * task.entries;
    const T* used = task.used + head * task.entries;
    T* grad_logit = task.grad_logit + head * task.entries;
    V sum[groups] = {};
    T total = T(0);
    const Index ahead_end = task.rowptr[task.end];
    for (Index slot = task.rowptr[row]; slot < task.rowptr[row + 1]; ++slot) {
        if (slot + prefetch_distance < ahead_end)
            prefetch_vectors<T, groups>(
                grad_out + task.col[slot + prefetch_distance] * width, held.tail);
        const Index target = task.col[slot], entry = task.order[slot];
        const T* from = grad_out + target * width;
        const V weight = splat<T>(used[entry]);
        V product = {};
#pragma GCC unroll 8
        for (int j = 0; j < groups; ++j) {
            const V given = load<T>(from + place<T, groups>(j, held.tail));
            product += held.part[j] * given;
            sum[j] += weight * given;
        }
        const T change = logit_gradient<T>(task, task.node + 2 * (target * task.heads + head),
                                           source, share[entry], used[entry],
                                           sum_of_lanes<T>(product));
        grad_logit[entry] = change;
        total += change;
    }
#pragma GCC unroll 8
    for (int j = 0; j < groups; ++j)
        store<T>(grad_states + head * channels + place<T, groups>(j, held.tail), sum[j]);
    grad_states[width + head] = total;
}

// The same for any width.
template <class T>
ADGN_INLINE void attention_back_any(const AttentionGradTask<T>& task, Index row, Index head) {
    const Index channels = task.channels, width = task.heads * channels;
    const T* states = task.states + row * task.step;
    const T* sent = states + head * channels;
    T* grad_states = task.grad_states + row * task.step;
    T* sum = grad_states + head * channels;
    const T source = states[width + head];
    for (Index j = 0; j < channels; ++j) sum[j] = T(0);
    T total = T(0);
    for (Index slot = task.rowptr[row]; slot < task.rowptr[row + 1]; ++slot) {
        const Index target = task.col[slot], entry = head * task.entries + task.order[slot];
        const T* from = task.grad_out + target * width + head * channels;
        const T weight = task.used[entry];
        Index j = 0;
        for (; j + lanes<T> <= channels; j += lanes<T>)
            store<T>(sum + j, load<T>(sum + j) + splat<T>(weight) * load<T>(from + j));
        for (; j < channels; ++j) sum[j] += weight * from[j];
        const T change =
            logit_gradient<T>(task, task.node + 2 * (target * task.heads + head), source,
                              task.share[entry], weight, dot<T>(sent, from, channels));
        task.grad_logit[entry] = change;
        total += change;
    }
    grad_states[width + head] = total;
}

template <class T>
void attention_back(const AttentionGradTask<T>& task) {
    const Index vectors = (task.channels + lanes<T> - 1) / lanes<T>;
    for (Index row = task.begin; row < task.end; ++row)
        for (Index head = 0; head < task.heads; ++head) {
            if (task.channels < lanes<T> || vectors > 4)
                attention_back_any<T>(task, row, head);
            else if (vectors == 1)
                attention_back_held<T, 1>(task, row, head);
            else if (vectors == 2)
                attention_back_held<T, 2>(task, row, head);
            else if (vectors == 3)
                attention_back_held<T, 3>(task, row, head);
            else
                attention_back_held<T, 4>(task, row, head);
        }
}

}  // namespace ADGN_ISA
}  // namespace adgn
