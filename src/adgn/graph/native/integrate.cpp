#include "integrate.hpp"

#include <cmath>

#include "parallel.hpp"
#include "parts.hpp"
#include "sorted_rows.hpp"
#include "weights.hpp"

namespace adgn {
namespace {

template <class T>
ForwardTask<T> forward_task(const Integration<T>& problem) {
    ForwardTask<T> task{};
    task.matrix = problem.matrix;
    task.second = problem.second;
    task.channels = problem.channels;
    task.width = padded<T>(problem.channels);
    task.epsilon = T(problem.epsilon);
    task.activation = Activation(problem.activation);
    return task;
}

// The memory of step `step` in what is kept.
template <class T>
void keep_activation(ForwardTask<T>& task, const Kept<T>& kept, Index step, Index size) {
    const bool tanh = task.activation == Activation::tanh;
    task.activated = kept.states && tanh ? kept.states + step * size : nullptr;
    task.active = kept.active ? kept.active + step * size : nullptr;
}

template <class T>
void forward_blocks(const Integration<T>& problem, const T* x, Index row_step, T* out,
                    const Kept<T>& kept) {
    const PackedWeights<T> packed(problem, true);
    const std::vector<Index> parts = block_parts(problem, 1);
    const Index d = problem.channels, width = padded<T>(d), size = problem.nodes * width;
    const Index block_size = largest_block(problem) * width;
    const Index per_worker = 2 * block_size + scratch_size(width);
    Buffer<T> memory(per_worker * problem.threads);
    SortedBlocks<T> sorted(problem);
    const bool keeps_x = kept.states && Activation(problem.activation) != Activation::tanh;
    auto work = [&](int part, int worker) {
        T* now = memory.get() + worker * per_worker;
        T* next = now + block_size;
        ForwardTask<T> task = forward_task(problem);
        task.scratch = next + block_size;
        for (Index b = parts[part]; b < parts[part + 1]; ++b) {
            const Index begin = problem.block_ptr[b], rows = problem.block_ptr[b + 1] - begin;
            task.begin = begin;
            task.end = begin + rows;
            task.sorted = sorted.sort(begin, begin + rows, worker);
            copy_rows(x + begin * row_step, row_step, now, width, rows, d);
            for (Index step = 0; step < problem.steps; ++step) {
                if (keeps_x)
                    copy_rows(now, width, kept.states + step * size + begin * width, width, rows,
                              width);
                task.weights = packed.weights(step);
                task.bias = packed.bias(step);
                task.x = {now, begin};
                task.x_next = {next, begin};
                keep_activation(task, kept, step, size);
                kernels<T>().forward(task);
                std::swap(now, next);
            }
            copy_rows(now, width, out + begin * row_step, row_step, rows, d);
        }
    };
    run_parts(int(parts.size()) - 1, problem.threads, work);
}

// One step of the rows in `parts`; scratch: [threads, scratch_size(width)].
template <class T>
void forward_rows(const Integration<T>& problem, Index step, const std::vector<Index>& parts,
                  const T* weights, const T* bias, const T* x, T* next, const Kept<T>& kept,
                  T* scratch) {
    const Index width = padded<T>(problem.channels);
    auto work = [&](int part, int worker) {
        ForwardTask<T> task = forward_task(problem);
        task.begin = parts[part];
        task.end = parts[part + 1];
        task.weights = weights;
        task.bias = bias;
        task.x = {x, 0};
        task.x_next = {next, 0};
        keep_activation(task, kept, step, problem.nodes * width);
        task.scratch = scratch + worker * scratch_size(width);
        kernels<T>().forward(task);
    };
    run_parts(int(parts.size()) - 1, problem.threads, work);
}

template <class T>
void forward_layers(const Integration<T>& problem, const T* x, T* out, T* spare,
                    const Kept<T>& kept) {
    const PackedWeights<T> packed(problem, true);
    const Index width = padded<T>(problem.channels), size = problem.nodes * width;
    Buffer<T> scratch(scratch_size(width) * problem.threads);
    const bool keeps_x = kept.states && Activation(problem.activation) != Activation::tanh;
    if (keeps_x) std::memcpy(kept.states, x, std::size_t(size) * sizeof(T));
    const Index last = problem.steps - 1;
    // Where the states after a step go: the end of it is `out`, what the backward pass wants is
    // where it wants it, and the rest alternates between two arrays that are free.
    const auto place_after = [&](Index step) {
        if (step == last) return out;
        if (keeps_x) return kept.states + (step + 1) * size;
        return (last - step) % 2 == 0 ? out : spare;
    };
    const T* now = x;
    std::vector<Index> parts;
    for (Index step = 0; step < problem.steps; ++step) {
        const Index rows = problem.rows_after(step + 1);
        if (parts.empty() || parts.back() != rows) parts = parts_of(problem, 1, 0, rows);
        T* next = place_after(step);
        forward_rows(problem, step, parts, packed.weights(step), packed.bias(step), now, next, kept,
                     scratch.get());
        now = next;
    }
}

template <class T>
BackwardTask<T> backward_task(const Integration<T>& problem) {
    BackwardTask<T> task{};
    task.matrix = problem.matrix;
    task.second = problem.second;
    task.channels = problem.channels;
    task.width = padded<T>(problem.channels);
    task.epsilon = T(problem.epsilon);
    task.activation = Activation(problem.activation);
    task.silent_from = problem.nodes;
    return task;
}

// How many steps lie between so many checkpoints.
constexpr Index checkpoint_interval(Index steps, Index checkpoints) {
    return (steps + checkpoints) / (checkpoints + 1);
}

// How many states of a block are stored: as many as leave room for others in the second-level
// cache, and for many steps of large blocks the root of their number.
constexpr Index block_checkpoint_bytes = 1 << 18;
inline Index block_checkpoints(Index steps, Index block_bytes) {
    const Index root = Index(std::sqrt(double(steps)));
    return std::min(steps, std::max(root, block_checkpoint_bytes / std::max<Index>(block_bytes, 1)));
}

// Points the task to what was kept of the step before `step`, and to the states before `step`.
// For tanh they are the states of a checkpoint and what the steps since then added. The last step,
// which comes first, starts from `first` and stores the checkpoints; the others start from the
// nearest one. Without `checkpoints.data` all start from `first`.
template <class T>
void recall(BackwardTask<T>& task, const Kept<T>& kept, Index step, Index steps, Index size,
            Rows<const T> first, Rows<T> checkpoints, Index checkpoint_size, Index every) {
    const bool tanh = task.activation == Activation::tanh;
    task.activated_before = step > 0 && tanh ? kept.states + (step - 1) * size : nullptr;
    task.active_before = step > 0 && kept.active ? kept.active + (step - 1) * size : nullptr;
    if (!tanh) {
        task.x = {kept.states ? kept.states + step * size : kept.first, 0};
        return;
    }
    const bool at_end = step == steps - 1;
    const Index checkpoint = at_end || !checkpoints.data ? 0 : step / every;
    task.x = first;
    if (checkpoint > 0)
        task.x = {checkpoints.data + (checkpoint - 1) * checkpoint_size, checkpoints.origin};
    task.activated = kept.states + checkpoint * every * size;
    task.steps_since = step - checkpoint * every;
    task.step_size = size;
    task.checkpoints = at_end ? checkpoints : Rows<T>{nullptr, 0};
    task.checkpoint_every = every;
    task.checkpoint_size = checkpoint_size;
}

template <class T>
void backward_blocks(const Integration<T>& problem, const T* grad_out, Index row_step, T* grad_x,
                     const Kept<T>& kept, T* grad_w_self, T* grad_w_neigh, T* grad_bias) {
    const PackedWeights<T> packed(problem, false);
    const std::vector<Index> parts = block_parts(problem, 2);
    const Index d = problem.channels, width = padded<T>(d), size = problem.nodes * width;
    const Index block_size = largest_block(problem) * width;
    const Index every = checkpoint_interval(
        problem.steps, block_checkpoints(problem.steps, block_size * Index(sizeof(T))));
    const Index per_worker = (4 + (problem.steps - 1) / every) * block_size + scratch_size(width);
    const bool tanh = Activation(problem.activation) == Activation::tanh;
    const bool shared = problem.weight_sets == 1;
    const int count = int(parts.size()) - 1;
    Buffer<T> memory(per_worker * problem.threads);
    SortedBlocks<T> sorted(problem);
    GradientSums<T> sums(d, problem.matrices(), grad_w_self ? count : 0, problem.weight_sets);
    auto work = [&](int part, int worker) {
        T* g = memory.get() + worker * per_worker;
        T* r = g + block_size;
        T* r_before = r + block_size;
        T* x = r_before + block_size;
        T* checkpoints = x + block_size;
        BackwardTask<T> task = backward_task(problem);
        task.scratch = checkpoints + (problem.steps - 1) / every * block_size;
        for (Index b = parts[part]; b < parts[part + 1]; ++b) {
            const Index begin = problem.block_ptr[b], rows = problem.block_ptr[b + 1] - begin;
            task.begin = begin;
            task.end = begin + rows;
            task.sorted = sorted.sort(begin, begin + rows, worker);
            task.g = {g, begin};
            copy_rows(grad_out + begin * row_step, row_step, g, width, rows, d);
            if (tanh) copy_rows(kept.first + begin * row_step, row_step, x, width, rows, d);
            const Index end_step = (problem.steps - 1) * size + begin * width;
            kernels<T>().slope(rows * width, task.epsilon, task.activation, g,
                               tanh ? kept.states + end_step : nullptr,
                               kept.active ? kept.active + end_step : nullptr, r);
            for (Index step = problem.steps - 1; step >= 0; --step) {
                task.weights = packed.weights(step);
                task.r = {r, begin};
                task.r_before = {step > 0 ? r_before : nullptr, begin};
                recall(task, kept, step, problem.steps, size, {x, begin}, {checkpoints, begin},
                       block_size, every);
                if (grad_w_self) {
                    task.grad_weights = sums.weights(part, shared ? 0 : step);
                    task.grad_bias = sums.bias(part, shared ? 0 : step);
                }
                kernels<T>().backward(task);
                std::swap(r, r_before);
            }
            copy_rows(g, width, grad_x + begin * row_step, row_step, rows, d);
        }
    };
    run_parts(count, problem.threads, work);
    if (!grad_w_self) return;
    const Index neigh_size = problem.matrices() * d * d;
    for (Index set = 0; set < problem.weight_sets; ++set)
        sums.add_to(set, grad_w_self + set * d * d, grad_w_neigh + set * neigh_size,
                    grad_bias ? grad_bias + set * d : nullptr);
}

// g = grad_out and r = epsilon g ⊙ act' of the last step, for the rows in `parts`.
template <class T>
void start_rows(const Integration<T>& problem, const std::vector<Index>& parts, const T* grad_out,
                T* g, T* r, const Kept<T>& kept) {
    const Index width = padded<T>(problem.channels), size = problem.nodes * width;
    const bool tanh = Activation(problem.activation) == Activation::tanh;
    auto work = [&](int part, int) {
        const Index begin = parts[part] * width, length = parts[part + 1] * width - begin;
        const Index end_step = (problem.steps - 1) * size + begin;
        std::memcpy(g + begin, grad_out + begin, std::size_t(length) * sizeof(T));
        kernels<T>().slope(length, T(problem.epsilon), Activation(problem.activation), g + begin,
                           tanh ? kept.states + end_step : nullptr,
                           kept.active ? kept.active + end_step : nullptr, r + begin);
    };
    run_parts(int(parts.size()) - 1, problem.threads, work);
}

// One step back of the rows in `parts`. Gradients of weights go to `sums`, part by part, unless it
// is null; checkpoints and scratch as for backward_layers.
template <class T>
void backward_rows(const Integration<T>& problem, Index step, const std::vector<Index>& parts,
                   const T* weights, T* g, const T* r, T* r_before, T* checkpoints,
                   const Kept<T>& kept, GradientSums<T>* sums, T* scratch) {
    const Index width = padded<T>(problem.channels), size = problem.nodes * width;
    auto work = [&](int part, int worker) {
        BackwardTask<T> task = backward_task(problem);
        task.scratch = scratch + worker * scratch_size(width);
        task.begin = parts[part];
        task.end = parts[part + 1];
        task.silent_from = problem.rows_after(step + 1);
        task.weights = weights;
        task.g = {g, 0};
        task.r = {r, 0};
        task.r_before = {step > 0 ? r_before : nullptr, 0};
        recall(task, kept, step, problem.steps, size, {kept.first, 0}, {checkpoints, 0}, size,
               checkpoint_interval(problem.steps, checkpoint_count));
        if (sums) {
            task.grad_weights = sums->weights(part, 0);
            task.grad_bias = sums->bias(part, 0);
        }
        kernels<T>().backward(task);
    };
    run_parts(int(parts.size()) - 1, problem.threads, work);
}

// Adds the sums to the gradients of the weights of a step.
template <class T>
void add_sums(const Integration<T>& problem, Index step, GradientSums<T>& sums, T* grad_w_self,
              T* grad_w_neigh, T* grad_bias) {
    const Index set = problem.weight_sets == 1 ? 0 : step, d = problem.channels;
    sums.add_to(0, grad_w_self + set * d * d, grad_w_neigh + set * problem.matrices() * d * d,
                grad_bias ? grad_bias + set * d : nullptr);
}

template <class T>
void backward_layers(const Integration<T>& problem, const T* grad_out, T* g, T* spare,
                     const Kept<T>& kept, T* grad_w_self, T* grad_w_neigh, T* grad_bias) {
    const PackedWeights<T> packed(problem, false);
    const Index d = problem.channels, width = padded<T>(d), size = problem.nodes * width;
    const bool shared = problem.weight_sets == 1;
    std::vector<Index> parts = parts_of(problem, 2, 0, problem.nodes);
    Buffer<T> scratch(scratch_size(width) * problem.threads);
    GradientSums<T> sums(d, problem.matrices(), grad_w_self ? int(parts.size()) - 1 : 0, 1);
    T* r = spare;
    T* r_before = spare + size;
    // The last step, which stores checkpoints, must then have all rows.
    T* checkpoints = problem.step_rows ? nullptr : spare + 2 * size;
    if (problem.step_rows) {  // nothing came back yet to rows that later steps did without
        std::memset(g, 0, std::size_t(size) * sizeof(T));
        std::memset(spare, 0, std::size_t(2 * size) * sizeof(T));
    }
    const Index last_rows = problem.rows_after(problem.steps);
    if (parts.back() != last_rows) parts = parts_of(problem, 2, 0, last_rows);
    start_rows(problem, parts, grad_out, g, r, kept);
    for (Index step = problem.steps - 1; step >= 0; --step) {
        const Index rows = problem.rows_after(step);
        if (parts.back() != rows) parts = parts_of(problem, 2, 0, rows);
        backward_rows(problem, step, parts, packed.weights(step), g, r, r_before, checkpoints, kept,
                      grad_w_self ? &sums : nullptr, scratch.get());
        std::swap(r, r_before);
        if (grad_w_self && (!shared || step == 0)) {
            add_sums(problem, step, sums, grad_w_self, grad_w_neigh, grad_bias);
            sums.clear();
        }
    }
}

// The problem with the weights of one step alone, so that no others are packed.
template <class T>
Integration<T> with_weights_of(const Integration<T>& problem, Index step) {
    Integration<T> one = problem;
    if (problem.weight_sets == 1) return one;
    const Index d = problem.channels;
    one.weight_sets = 1;
    one.w_self += step * d * d;
    one.w_neigh += step * problem.matrices() * d * d;
    if (one.bias) one.bias += step * d;
    return one;
}

}  // namespace

template <class T>
void integrate_forward(const Integration<T>& problem, const T* x, Index row_step, T* out, T* spare,
                       const Kept<T>& kept) {
    if (problem.nodes == 0) return;  // arrays without numbers may have no address
    if (problem.block_ptr)
        forward_blocks(problem, x, row_step, out, kept);
    else
        forward_layers(problem, x, out, spare, kept);
}

template <class T>
void integrate_backward(const Integration<T>& problem, const T* grad_out, Index row_step, T* grad_x,
                        T* spare, const Kept<T>& kept, T* grad_w_self, T* grad_w_neigh,
                        T* grad_bias) {
    if (problem.nodes == 0) return;
    if (problem.block_ptr)
        backward_blocks(problem, grad_out, row_step, grad_x, kept, grad_w_self, grad_w_neigh,
                        grad_bias);
    else
        backward_layers(problem, grad_out, grad_x, spare, kept, grad_w_self, grad_w_neigh,
                        grad_bias);
}

template <class T>
void step_forward(const Integration<T>& problem, Index step, Index begin, Index end, const T* x,
                  T* next, const Kept<T>& kept) {
    if (begin >= end) return;
    const PackedWeights<T> packed(with_weights_of(problem, step), true);
    Buffer<T> scratch(scratch_size(padded<T>(problem.channels)) * problem.threads);
    forward_rows(problem, step, parts_of(problem, 1, begin, end), packed.weights(0), packed.bias(0),
                 x, next, kept, scratch.get());
}

template <class T>
void start_backward(const Integration<T>& problem, const T* grad_out, T* g, T* r,
                    const Kept<T>& kept) {
    if (problem.nodes == 0) return;
    start_rows(problem, parts_of(problem, 2, 0, problem.nodes), grad_out, g, r, kept);
}

template <class T>
void step_backward(const Integration<T>& problem, Index step, Index begin, Index end, T* g,
                   const T* r, T* r_before, T* checkpoints, const Kept<T>& kept, T* grad_w_self,
                   T* grad_w_neigh, T* grad_bias) {
    if (begin >= end) return;
    const PackedWeights<T> packed(with_weights_of(problem, step), false);
    const std::vector<Index> parts = parts_of(problem, 2, begin, end);
    Buffer<T> scratch(scratch_size(padded<T>(problem.channels)) * problem.threads);
    const int count = grad_w_self ? int(parts.size()) - 1 : 0;
    GradientSums<T> sums(problem.channels, problem.matrices(), count, 1);
    backward_rows(problem, step, parts, packed.weights(0), g, r, r_before, checkpoints, kept,
                  grad_w_self ? &sums : nullptr, scratch.get());
    if (grad_w_self) add_sums(problem, step, sums, grad_w_self, grad_w_neigh, grad_bias);
}

#define ADGN_INSTANTIATE(T)                                                                        \
    template void integrate_forward<T>(const Integration<T>&, const T*, Index, T*, T*,             \
                                       const Kept<T>&);                                            \
    template void integrate_backward<T>(const Integration<T>&, const T*, Index, T*, T*,            \
                                        const Kept<T>&, T*, T*, T*);                               \
    template void step_forward<T>(const Integration<T>&, Index, Index, Index, const T*, T*,        \
                                  const Kept<T>&);                                                 \
    template void start_backward<T>(const Integration<T>&, const T*, T*, T*, const Kept<T>&);      \
    template void step_backward<T>(const Integration<T>&, Index, Index, Index, T*, const T*, T*,   \
                                   T*, const Kept<T>&, T*, T*, T*);
ADGN_INSTANTIATE(float)
ADGN_INSTANTIATE(double)

}  // namespace adgn
