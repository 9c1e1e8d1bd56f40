// Work along the entries of a sparse matrix: dot products, cosines and attention, with gradients.
#pragma once

#include "kernels.hpp"

namespace adgn {

// Where the entries of a matrix are, and of its transpose, slot s of which is entry order[s].
struct EntryPattern {
    const std::int32_t* rowptr;
    const std::int32_t* col;
    const std::int32_t* rowptr_t;  // those of the transpose are null where they are not needed
    const std::int32_t* col_t;
    const std::int32_t* order;
    Index rows, columns;
};

// out[s] = left[u] · right[j] for each entry; with `norm` (a square matrix) see DotTask.
template <class T>
void edge_dots(const EntryPattern&, Index channels, const T* left, const T* right, const T* norm,
               T floor, T* out, int threads);

// The gradient in x of cosine[s] = x[u] · x[j] / max(norm[u] norm[j], floor), from that in the cosines.
template <class T>
void cosine_backward(const EntryPattern&, Index channels, const T* x, const T* norm, T floor,
                     const T* cosine, const T* grad, T* grad_x, int threads);

// See AttentionTask; `value` has the weights of the entries.
template <class T>
struct Attention {
    EntryPattern pattern;
    const T* value;
    Index heads, channels;
    const T* states;  // [rows, heads (channels + 2)]
    double slope;
    const T* keep;
    T* share;
    T* used;
    int threads;
};

template <class T>
void attention_forward(const Attention<T>&, T* out);
template <class T>
void attention_backward(const Attention<T>&, const T* out, const T* grad_out, T* grad_states);

}  // namespace adgn
