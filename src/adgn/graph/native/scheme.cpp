#include "scheme.hpp"

#include "parallel.hpp"
#include "parts.hpp"
#include "sorted_rows.hpp"
#include "weights.hpp"

namespace adgn {
namespace {

// The step that each rate belongs to, and whether it is the first one in it.
struct Order {
    std::vector<Index> step;
    std::vector<bool> first;
    explicit Order(const Scheme& scheme) {
        Index step_now = 0;
        bool starts = true;
        for (Index e = 0; e < scheme.rates; ++e) {
            step.push_back(step_now);
            first.push_back(starts);
            starts = scheme.ends_step[e] != 0;
            step_now += starts;
        }
    }
};

// Arrays of states: one after the other `stride` numbers apart, of which the first row is `origin`.
template <class T>
struct Arrays {
    T* data;
    Index stride, origin;
    Rows<T> operator[](Index number) const { return {data + number * stride, origin}; }
};

template <class T>
Rows<const T> read(Rows<T> rows) {
    return {rows.data, rows.origin};
}

// The states and rates of a pass: in what is kept, or in arrays that are used again and again.
template <class T>
struct Places {
    Arrays<T> between;  // 2: states inside a step
    Arrays<T> starts;   // 2 where none are kept, else 1 for the end
    Arrays<T> rates;    // `history`
    Arrays<T> kept_starts, kept_rates;
    Index steps, history;

    Rows<T> start(Index step) const {
        if (kept_starts.data && step < steps) return kept_starts[step];
        return starts[kept_starts.data ? 0 : step % 2];
    }
    Rows<T> rate(Index number) const {
        return kept_rates.data ? kept_rates[number] : rates[number % history];
    }
};

template <class T>
Places<T> places_of(const Integration<T>& problem, const Scheme& scheme, const KeptRates<T>& kept,
                    T* memory, Index stride, Index origin) {
    const Index size = problem.nodes * padded<T>(problem.channels);
    Places<T> places{};
    places.between = {memory, stride, origin};
    places.starts = {memory + 2 * stride, stride, origin};
    places.rates = {memory + 4 * stride, stride, origin};
    places.kept_starts = {kept.starts, size, 0};
    places.kept_rates = {kept.rates, size, 0};
    places.steps = problem.steps;
    places.history = scheme.history;
    return places;
}

// Takes rate e on some rows and goes on to what it leads to.
template <class T>
void take_rate(const Integration<T>& problem, const Scheme& scheme, const Order& order,
               const PackedWeights<T>& packed, const Places<T>& places, Rows<T> velocity, Index e,
               Index begin, Index end, const SortedBlock<T>& sorted, T* scratch) {
    RateTask<T> task{};
    task.sorted = sorted;
    const Index step = order.step[e];
    task.matrix = problem.matrix;
    task.second = problem.second;
    task.begin = begin;
    task.end = end;
    task.channels = problem.channels;
    task.width = padded<T>(problem.channels);
    task.weights = packed.weights(step);
    task.bias = packed.bias(step);
    task.activation = Activation(problem.activation);
    task.x = read(order.first[e] ? places.start(step) : places.between[(e - 1) % 2]);
    task.next = scheme.ends_step[e] ? places.start(step + 1) : places.between[e % 2];
    const double* factor = scheme.factor + e * scheme.history;
    task.own = T(factor[0]);
    task.result.base = read(places.start(step));
    if (scheme.has_velocity) {
        task.velocity = velocity;
        task.position = T(scheme.position);
        if (places.kept_rates.data) task.rate = places.rate(e);
    } else {
        task.rate = places.rate(e);
        for (Index h = 1; h < scheme.history && h <= e; ++h) {
            if (factor[h] == 0.0) continue;
            task.result.rate[task.result.count] = read(places.rate(e - h));
            task.result.factor[task.result.count++] = T(factor[h]);
        }
    }
    task.scratch = scratch;
    kernels<T>().rate(task);
}

template <class T>
void forward_blocks(const Integration<T>& problem, const Scheme& scheme, const T* x, Index row_step,
                    T* velocity, T* out, const KeptRates<T>& kept) {
    const PackedWeights<T> packed(problem, true);
    const Order order(scheme);
    const std::vector<Index> parts = block_parts(problem, 1);
    const Index d = problem.channels, width = padded<T>(d);
    const Index block_size = largest_block(problem) * width;
    const Index arrays = 5 + scheme.history;
    const Index per_worker = arrays * block_size + scratch_size(width);
    Buffer<T> memory(per_worker * problem.threads);
    SortedBlocks<T> blocks(problem);
    auto work = [&](int part, int worker) {
        T* own = memory.get() + worker * per_worker;
        T* moving = own + (4 + scheme.history) * block_size;
        for (Index b = parts[part]; b < parts[part + 1]; ++b) {
            const Index begin = problem.block_ptr[b], end = problem.block_ptr[b + 1];
            const Index rows = end - begin;
            const Places<T> places = places_of(problem, scheme, kept, own, block_size, begin);
            const SortedBlock<T> sorted = blocks.sort(begin, end, worker);
            const Rows<T> start = places.start(0);
            copy_rows(x + begin * row_step, row_step, start.data + (begin - start.origin) * width,
                      width, rows, d);
            if (velocity) copy_rows(velocity + begin * row_step, row_step, moving, width, rows, d);
            for (Index e = 0; e < scheme.rates; ++e)
                take_rate(problem, scheme, order, packed, places, {moving, begin}, e, begin, end,
                          sorted, own + arrays * block_size);
            const Rows<T> last = places.start(problem.steps);
            copy_rows(last.data + (begin - last.origin) * width, width, out + begin * row_step,
                      row_step, rows, d);
            if (velocity) copy_rows(moving, width, velocity + begin * row_step, row_step, rows, d);
        }
    };
    run_parts(int(parts.size()) - 1, problem.threads, work);
}

template <class T>
void forward_layers(const Integration<T>& problem, const Scheme& scheme, const T* x, T* velocity,
                    T* out, T* spare, const KeptRates<T>& kept) {
    const PackedWeights<T> packed(problem, true);
    const Order order(scheme);
    const std::vector<Index> parts = parts_of(problem, 1, 0, problem.nodes);
    const Index width = padded<T>(problem.channels), size = problem.nodes * width;
    Buffer<T> scratch(scratch_size(width) * problem.threads);
    const Places<T> places = places_of(problem, scheme, kept, spare, size, 0);
    std::memcpy(places.start(0).data, x, std::size_t(size) * sizeof(T));
    for (Index e = 0; e < scheme.rates; ++e) {
        auto work = [&](int part, int worker) {
            take_rate(problem, scheme, order, packed, places, {velocity, 0}, e, parts[part],
                      parts[part + 1], {}, scratch.get() + worker * scratch_size(width));
        };
        run_parts(int(parts.size()) - 1, problem.threads, work);
    }
    std::memcpy(out, places.start(problem.steps).data, std::size_t(size) * sizeof(T));
}

// The arrays of a backward pass.
template <class T>
struct Gradients {
    Rows<T> g, velocity;
    Arrays<T> r;      // 2
    Arrays<T> rates;  // `history`
};

// Which gradients in rates hold something: those of rates e - history + 1 … e at any time.
using Held = std::vector<bool>;

// What rate e did, backwards, on some rows; e = the number of rates is the end of the last step.
// `held` is what holds before; all parts of an array see the same.
template <class T>
void take_back(const Integration<T>& problem, const Scheme& scheme, const Order& order,
               const PackedWeights<T>& packed, const KeptRates<T>& kept, const Gradients<T>& to,
               const Held& held, Index e, Index begin, Index end, const SortedBlock<T>& sorted,
               T* grad_weights, T* grad_bias, T* scratch) {
    const Index size = problem.nodes * padded<T>(problem.channels), history = scheme.history;
    const bool at_end = e == scheme.rates;
    const Index step = at_end ? problem.steps : order.step[e];
    const double* before = e > 0 ? scheme.factor + (e - 1) * history : nullptr;
    const bool starts = at_end || order.first[e];
    AdjointTask<T> task{};
    task.sorted = sorted;
    task.matrix = problem.matrix;
    task.second = problem.second;
    task.begin = begin;
    task.end = end;
    task.channels = problem.channels;
    task.width = padded<T>(problem.channels);
    task.activation = Activation(problem.activation);
    task.g = to.g;
    task.starts_step = starts;
    task.scratch = scratch;
    if (!at_end) {
        task.weights = packed.weights(step);
        task.r = read(to.r[e % 2]);
        task.grad_weights = grad_weights;
        task.grad_bias = grad_bias;
        task.x.base = {kept.starts + step * size, 0};
        for (Index h = 0; !starts && h < history && h < e; ++h) {
            if (before[h] == 0.0) continue;
            task.x.rate[task.x.count] = {kept.rates + (e - 1 - h) * size, 0};
            task.x.factor[task.x.count++] = T(before[h]);
        }
    }
    if (e > 0) {
        task.r_before = to.r[(e - 1) % 2];
        if (kept.rates) task.rate_before = {kept.rates + (e - 1) * size, 0};
        if (scheme.has_velocity) {
            task.velocity = to.velocity;
            task.position = T(scheme.position);
            task.factor[0] = T(before[0]);
        } else {
            for (Index h = 0; h < history && h < e; ++h) {
                const Index slot = (e - 1 - h) % history;
                if (h > 0 && before[h] == 0.0) continue;
                task.grad_rate[task.count] = to.rates[slot];
                task.fresh[task.count] = !held[slot];
                task.factor[task.count++] = T(before[h]);
            }
        }
    }
    kernels<T>().adjoint(task);
}

// Marks what `take_back` of rate e filled, and what it used up.
inline void note_held(const Scheme& scheme, Index e, Held& held) {
    if (e == 0 || scheme.has_velocity) return;
    const double* before = scheme.factor + (e - 1) * scheme.history;
    for (Index h = 1; h < scheme.history && h < e; ++h)
        if (before[h] != 0.0) held[std::size_t((e - 1 - h) % scheme.history)] = true;
    held[std::size_t((e - 1) % scheme.history)] = false;
}

template <class T>
void backward_blocks(const Integration<T>& problem, const Scheme& scheme, const T* grad_out,
                     Index row_step, T* grad_velocity, T* grad_x, const KeptRates<T>& kept,
                     T* grad_w_self, T* grad_w_neigh, T* grad_bias) {
    const PackedWeights<T> packed(problem, false);
    const Order order(scheme);
    const std::vector<Index> parts = block_parts(problem, 2);
    const Index d = problem.channels, width = padded<T>(d);
    const Index block_size = largest_block(problem) * width;
    const Index arrays = 4 + scheme.history;
    const Index per_worker = arrays * block_size + scratch_size(width);
    const bool shared = problem.weight_sets == 1;
    const int count = int(parts.size()) - 1;
    Buffer<T> memory(per_worker * problem.threads);
    SortedBlocks<T> blocks(problem);
    GradientSums<T> sums(d, problem.matrices(), grad_w_self ? count : 0, problem.weight_sets);
    auto work = [&](int part, int worker) {
        T* own = memory.get() + worker * per_worker;
        for (Index b = parts[part]; b < parts[part + 1]; ++b) {
            const Index begin = problem.block_ptr[b], end = problem.block_ptr[b + 1];
            const Index rows = end - begin;
            const SortedBlock<T> sorted = blocks.sort(begin, end, worker);
            Gradients<T> to{};
            to.g = {own, begin};
            to.velocity = {own + block_size, begin};
            to.r = {own + 2 * block_size, block_size, begin};
            to.rates = {own + 4 * block_size, block_size, begin};
            copy_rows(grad_out + begin * row_step, row_step, to.g.data, width, rows, d);
            if (grad_velocity)
                copy_rows(grad_velocity + begin * row_step, row_step, to.velocity.data, width, rows,
                          d);
            Held held(std::size_t(scheme.history), false);
            for (Index e = scheme.rates; e >= 0; --e) {
                const Index set = shared || e == scheme.rates ? 0 : order.step[e];
                take_back(problem, scheme, order, packed, kept, to, held, e, begin, end, sorted,
                          grad_w_self ? sums.weights(part, set) : nullptr,
                          grad_w_self ? sums.bias(part, set) : nullptr,
                          own + arrays * block_size);
                note_held(scheme, e, held);
            }
            copy_rows(to.g.data, width, grad_x + begin * row_step, row_step, rows, d);
            if (grad_velocity)
                copy_rows(to.velocity.data, width, grad_velocity + begin * row_step, row_step, rows,
                          d);
        }
    };
    run_parts(count, problem.threads, work);
    if (!grad_w_self) return;
    for (Index set = 0; set < problem.weight_sets; ++set)
        sums.add_to(set, grad_w_self + set * d * d, grad_w_neigh + set * problem.matrices() * d * d,
                    grad_bias ? grad_bias + set * d : nullptr);
}

template <class T>
void backward_layers(const Integration<T>& problem, const Scheme& scheme, const T* grad_out,
                     T* grad_velocity, T* grad_x, T* spare, const KeptRates<T>& kept,
                     T* grad_w_self, T* grad_w_neigh, T* grad_bias) {
    const PackedWeights<T> packed(problem, false);
    const Order order(scheme);
    const std::vector<Index> parts = parts_of(problem, 2, 0, problem.nodes);
    const Index d = problem.channels, width = padded<T>(d), size = problem.nodes * width;
    const bool shared = problem.weight_sets == 1;
    const int count = int(parts.size()) - 1;
    Buffer<T> scratch(scratch_size(width) * problem.threads);
    GradientSums<T> sums(d, problem.matrices(), grad_w_self ? count : 0, 1);
    Gradients<T> to{};
    to.g = {grad_x, 0};
    to.velocity = {grad_velocity, 0};
    to.r = {spare, size, 0};
    to.rates = {spare + 2 * size, size, 0};
    std::memcpy(grad_x, grad_out, std::size_t(size) * sizeof(T));
    Held held(std::size_t(scheme.history), false);
    for (Index e = scheme.rates; e >= 0; --e) {
        auto work = [&](int part, int worker) {
            take_back(problem, scheme, order, packed, kept, to, held, e, parts[part],
                      parts[part + 1], {}, grad_w_self ? sums.weights(part, 0) : nullptr,
                      grad_w_self ? sums.bias(part, 0) : nullptr,
                      scratch.get() + worker * scratch_size(width));
        };
        run_parts(count, problem.threads, work);
        note_held(scheme, e, held);
        if (e == scheme.rates || !grad_w_self) continue;
        if (shared ? e == 0 : bool(order.first[std::size_t(e)])) {
            const Index set = shared ? 0 : order.step[std::size_t(e)];
            sums.add_to(0, grad_w_self + set * d * d,
                        grad_w_neigh + set * problem.matrices() * d * d,
                        grad_bias ? grad_bias + set * d : nullptr);
            sums.clear();
        }
    }
}

}  // namespace

template <class T>
void scheme_forward(const Integration<T>& problem, const Scheme& scheme, const T* x, Index row_step,
                    T* velocity, T* out, T* spare, const KeptRates<T>& kept) {
    if (problem.nodes == 0) return;  // arrays without numbers may have no address
    if (problem.block_ptr)
        forward_blocks(problem, scheme, x, row_step, velocity, out, kept);
    else
        forward_layers(problem, scheme, x, velocity, out, spare, kept);
}

template <class T>
void scheme_backward(const Integration<T>& problem, const Scheme& scheme, const T* grad_out,
                     Index row_step, T* grad_velocity, T* grad_x, T* spare,
                     const KeptRates<T>& kept, T* grad_w_self, T* grad_w_neigh, T* grad_bias) {
    if (problem.nodes == 0) return;
    if (problem.block_ptr)
        backward_blocks(problem, scheme, grad_out, row_step, grad_velocity, grad_x, kept,
                        grad_w_self, grad_w_neigh, grad_bias);
    else
        backward_layers(problem, scheme, grad_out, grad_velocity, grad_x, spare, kept, grad_w_self,
                        grad_w_neigh, grad_bias);
}

#define ADGN_INSTANTIATE(T)                                                                        \
    template void scheme_forward<T>(const Integration<T>&, const Scheme&, const T*, Index, T*, T*, \
                                    T*, const KeptRates<T>&);                                      \
    template void scheme_backward<T>(const Integration<T>&, const Scheme&, const T*, Index, T*,    \
                                     T*, T*, const KeptRates<T>&, T*, T*, T*);
ADGN_INSTANTIATE(float)
ADGN_INSTANTIATE(double)

}  // namespace adgn
