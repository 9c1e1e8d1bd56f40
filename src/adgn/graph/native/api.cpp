// What Python calls: plain C functions on plain arrays, one per number type where types matter.
//
// Each returns 0, or -1 where memory ran out. Python has checked types, shapes and contiguity, and
// has had the patterns checked here (adgn_check_pattern) before it passes them on.
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

#include "edge_work.hpp"
#include "integrate.hpp"
#include "locality.hpp"
#include "neighbourhood.hpp"
#include "parallel.hpp"
#include "partition.hpp"
#include "pattern.hpp"
#include "scheme.hpp"

#define ADGN_API extern "C" __attribute__((visibility("default")))

namespace adgn {
bool use_instruction_set(const char* name);
}

namespace {

using adgn::Index;

template <class Work>
int guarded(Work work) {
    try {
        work();
        return 0;
    } catch (const std::bad_alloc&) {
        return -1;
    }
}

template <class T>
int multiply(const adgn::Matrix<T>& matrix, Index rows, Index channels, const T* x, T* out,
             int threads) {
    return guarded([&] {
        const std::vector<Index> parts =
            adgn::cut_rows(matrix.rowptr, nullptr, rows, double(channels), double(channels),
                           threads);
        auto work = [&](int part, int) {
            adgn::kernels<T>().product(matrix, parts[part], parts[part + 1], channels, x, out);
        };
        adgn::run_parts(int(parts.size()) - 1, threads, work);
    });
}

}  // namespace

// Raised whenever a function below changes, so that a library of another build is recognised.
ADGN_API int adgn_interface() { return 9; }
ADGN_API const char* adgn_instruction_set() { return adgn::instruction_set(); }
ADGN_API int adgn_use_instruction_set(const char* name) { return adgn::use_instruction_set(name); }
ADGN_API void adgn_use_team(adgn::TeamRunner runner) { adgn::set_team_runner(runner); }

// Asks the system for large pages: fresh memory is then handed out in 2 MB pieces rather than in
// 4 KB ones, and neighbours are found with fewer look-ups. The system may ignore it.
ADGN_API void adgn_prefer_large_pages(void* memory, Index bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    const std::uintptr_t page = std::uintptr_t(sysconf(_SC_PAGESIZE));
    const std::uintptr_t first = (std::uintptr_t(memory) + page - 1) / page * page;
    const std::uintptr_t last = (std::uintptr_t(memory) + std::uintptr_t(bytes)) / page * page;
    if (first < last) (void)madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
#else
    (void)memory;
    (void)bytes;
#endif
}

ADGN_API int adgn_sort_entries(const Index* row, const Index* column, Index entries, Index rows,
                               Index columns, std::int32_t* rowptr, std::int32_t* col,
                               std::int32_t* slot, Index* slots) {
    return guarded([&] {
        *slots = adgn::sort_entries(row, column, entries, rows, columns, rowptr, col, slot);
    });
}

ADGN_API int adgn_transpose(const std::int32_t* rowptr, const std::int32_t* col, Index rows,
                            Index columns, std::int32_t* rowptr_t, std::int32_t* col_t,
                            std::int32_t* order) {
    return guarded([&] { adgn::transpose(rowptr, col, rows, columns, rowptr_t, col_t, order); });
}

ADGN_API int adgn_order_by_neighbours(const std::int32_t* rowptr, const std::int32_t* col,
                                      const std::int32_t* rowptr_t, const std::int32_t* col_t,
                                      Index nodes, Index first, Index count,
                                      std::int32_t* order) {
    return guarded([&] {
        adgn::order_by_neighbours(rowptr, col, rowptr_t, col_t, nodes, first, count, order);
    });
}

ADGN_API int adgn_read_rows(const std::int32_t* rowptr, const std::int32_t* col, Index matrix_rows,
                            Index columns, const std::int32_t* rows, Index count, Index begin,
                            Index window, adgn::Reading* result) {
    return guarded([&] {
        *result = adgn::read_rows(rowptr, col, matrix_rows, columns, rows, count, begin, window);
    });
}

ADGN_API int adgn_renumber(const std::int32_t* rowptr, const std::int32_t* col,
                           const std::int32_t* order, Index nodes, std::int32_t* place,
                           std::int32_t* rowptr_out, std::int32_t* col_out, std::int32_t* slot_out,
                           Index* wrong) {
    return guarded([&] {
        *wrong = adgn::renumber(rowptr, col, order, nodes, place, rowptr_out, col_out, slot_out);
    });
}

ADGN_API int adgn_take_rows(const char* from, const std::int32_t* order, Index rows, Index bytes,
                            char* out, int threads) {
    return guarded([&] { adgn::take_rows(from, order, rows, bytes, out, threads); });
}

ADGN_API int adgn_count_at_edges(const std::int32_t* rowptr, const std::int32_t* col, Index nodes,
                                 const Index* first, const Index* second, Index edges,
                                 Index* triangles, Index* squares, Index* most, Index* lone,
                                 int threads) {
    return guarded([&] {
        adgn::count_at_edges(rowptr, col, nodes, first, second, edges, triangles, squares, most,
                             lone, threads);
    });
}

ADGN_API void adgn_take_blocks(const std::int32_t* rowptr, const std::int32_t* col,
                               const Index* node_ptr, const Index* blocks, Index count,
                               std::int32_t* rowptr_out, std::int32_t* col_out,
                               std::int32_t* slot_out) {
    adgn::take_blocks(rowptr, col, node_ptr, blocks, count, rowptr_out, col_out, slot_out);
}

ADGN_API int adgn_check_pattern(const std::int32_t* rowptr, const std::int32_t* col, Index rows,
                                Index columns, Index slots, const Index* block_ptr, Index blocks,
                                Index* place) {
    return int(
        adgn::check_pattern(rowptr, col, rows, columns, slots, block_ptr, blocks, place));
}

#define ADGN_TYPED(T, suffix)                                                                      \
    ADGN_API int adgn_multiply_##suffix(const adgn::Matrix<T>* matrix, Index rows, Index channels, \
                                        const T* x, T* out, int threads) {                         \
        return multiply<T>(*matrix, rows, channels, x, out, threads);                              \
    }                                                                                              \
    ADGN_API int adgn_forward_##suffix(const adgn::Integration<T>* problem, const T* x,            \
                                       Index row_step, T* out, T* spare,                           \
                                       const adgn::Kept<T>* kept) {                                \
        return guarded(                                                                            \
            [&] { adgn::integrate_forward<T>(*problem, x, row_step, out, spare, *kept); });        \
    }                                                                                              \
    ADGN_API int adgn_backward_##suffix(                                                           \
        const adgn::Integration<T>* problem, const T* grad_out, Index row_step, T* grad_x,         \
        T* spare, const adgn::Kept<T>* kept, T* grad_w_self, T* grad_w_neigh, T* grad_bias) {       \
        return guarded([&] {                                                                       \
            adgn::integrate_backward<T>(*problem, grad_out, row_step, grad_x, spare, *kept,        \
                                        grad_w_self, grad_w_neigh, grad_bias);                      \
        });                                                                                        \
    }                                                                                              \
    ADGN_API int adgn_step_forward_##suffix(const adgn::Integration<T>* problem, Index step,       \
                                            Index begin, Index end, const T* x, T* next,           \
                                            const adgn::Kept<T>* kept) {                           \
        return guarded(                                                                            \
            [&] { adgn::step_forward<T>(*problem, step, begin, end, x, next, *kept); });           \
    }                                                                                              \
    ADGN_API int adgn_start_backward_##suffix(const adgn::Integration<T>* problem,                 \
                                              const T* grad_out, T* g, T* r,                       \
                                              const adgn::Kept<T>* kept) {                         \
        return guarded([&] { adgn::start_backward<T>(*problem, grad_out, g, r, *kept); });         \
    }                                                                                              \
    ADGN_API int adgn_step_backward_##suffix(                                                      \
        const adgn::Integration<T>* problem, Index step, Index begin, Index end, T* g, const T* r, \
        T* r_before, T* checkpoints, const adgn::Kept<T>* kept, T* grad_w_self, T* grad_w_neigh,   \
        T* grad_bias) {                                                                            \
        return guarded([&] {                                                                       \
            adgn::step_backward<T>(*problem, step, begin, end, g, r, r_before, checkpoints, *kept, \
                                   grad_w_self, grad_w_neigh, grad_bias);                          \
        });                                                                                        \
    }                                                                                              \
    ADGN_API int adgn_scheme_forward_##suffix(                                                     \
        const adgn::Integration<T>* problem, const adgn::Scheme* scheme, const T* x,               \
        Index row_step, T* velocity, T* out, T* spare, const adgn::KeptRates<T>* kept) {           \
        return guarded([&] {                                                                       \
            adgn::scheme_forward<T>(*problem, *scheme, x, row_step, velocity, out, spare, *kept);  \
        });                                                                                        \
    }                                                                                              \
    ADGN_API int adgn_scheme_backward_##suffix(                                                    \
        const adgn::Integration<T>* problem, const adgn::Scheme* scheme, const T* grad_out,        \
        Index row_step, T* grad_velocity, T* grad_x, T* spare, const adgn::KeptRates<T>* kept,     \
        T* grad_w_self, T* grad_w_neigh, T* grad_bias) {                                           \
        return guarded([&] {                                                                       \
            adgn::scheme_backward<T>(*problem, *scheme, grad_out, row_step, grad_velocity, grad_x, \
                                     spare, *kept, grad_w_self, grad_w_neigh, grad_bias);          \
        });                                                                                        \
    }                                                                                              \
    ADGN_API int adgn_edge_dots_##suffix(const adgn::EntryPattern* pattern, Index channels,        \
                                         const T* left, const T* right, const T* norm,             \
                                         double floor, T* out, int threads) {                      \
        return guarded([&] {                                                                       \
            adgn::edge_dots<T>(*pattern, channels, left, right, norm, T(floor), out, threads);     \
        });                                                                                        \
    }                                                                                              \
    ADGN_API int adgn_cosine_backward_##suffix(                                                    \
        const adgn::EntryPattern* pattern, Index channels, const T* x, const T* norm,              \
        double floor, const T* cosine, const T* grad, T* grad_x, int threads) {                    \
        return guarded([&] {                                                                       \
            adgn::cosine_backward<T>(*pattern, channels, x, norm, T(floor), cosine, grad, grad_x,  \
                                     threads);                                                     \
        });                                                                                        \
    }                                                                                              \
    ADGN_API int adgn_attention_forward_##suffix(const adgn::Attention<T>* problem, T* out) {      \
        return guarded([&] { adgn::attention_forward<T>(*problem, out); });                        \
    }                                                                                              \
    ADGN_API int adgn_attention_backward_##suffix(const adgn::Attention<T>* problem,               \
                                                  const T* out, const T* grad_out,                 \
                                                  T* grad_states) {                                \
        return guarded(                                                                            \
            [&] { adgn::attention_backward<T>(*problem, out, grad_out, grad_states); });           \
    }                                                                                              \
    ADGN_API void adgn_tanh_##suffix(Index count, const T* x, T* out) {                            \
        adgn::kernels<T>().tanh(count, x, out);                                                    \
    }
ADGN_TYPED(float, float)
ADGN_TYPED(double, double)
