// Weights as the kernels want them, and gradients of weights as torch wants them.
#pragma once

#include <algorithm>

#include "integrate.hpp"
#include "parallel.hpp"

namespace adgn {

// Per set [(1 + matrices) channels, width]: M, V and, with two matrices, U one above the other, each
// transposed or not; and the bias, zero where there is none.
template <class T>
class PackedWeights {
  public:
    PackedWeights(const Integration<T>& problem, bool transposed)
        : width_(padded<T>(problem.channels)),
          set_size_((1 + problem.matrices()) * problem.channels * width_),
          shared_(problem.weight_sets == 1),
          weights_(problem.weight_sets * set_size_),
          bias_(problem.weight_sets * width_) {
        const Index d = problem.channels, matrices = problem.matrices();
        std::fill_n(weights_.get(), problem.weight_sets * set_size_, T(0));
        std::fill_n(bias_.get(), problem.weight_sets * width_, T(0));
        for (Index set = 0; set < problem.weight_sets; ++set) {
            pack(problem.w_self + set * d * d, d, transposed, weights_.get() + set * set_size_);
            for (Index k = 0; k < matrices; ++k)
                pack(problem.w_neigh + (set * matrices + k) * d * d, d, transposed,
                     weights_.get() + set * set_size_ + (1 + k) * d * width_);
            if (problem.bias)
                std::copy_n(problem.bias + set * d, d, bias_.get() + set * width_);
        }
    }
    const T* weights(Index step) const { return weights_.get() + set_of(step) * set_size_; }
    const T* bias(Index step) const { return bias_.get() + set_of(step) * width_; }

  private:
    Index set_of(Index step) const { return shared_ ? 0 : step; }
    void pack(const T* from, Index d, bool transposed, T* to) {
        for (Index i = 0; i < d; ++i)
            for (Index j = 0; j < d; ++j)
                to[i * width_ + j] = transposed ? from[j * d + i] : from[i * d + j];
    }

    Index width_, set_size_;
    bool shared_;
    Buffer<T> weights_, bias_;
};

// One sum of gradients per part, added up in the order of the parts.
template <class T>
class GradientSums {
  public:
    GradientSums(Index channels, Index matrices, int parts, Index sets)
        : d_(channels),
          rows_((1 + matrices) * channels),
          width_(padded<T>(channels)),
          set_size_((rows_ + 1) * width_),
          sets_(sets),
          parts_(parts),
          sums_(parts * sets * set_size_) {
        clear();
    }
    void clear() { std::fill_n(sums_.get(), parts_ * sets_ * set_size_, T(0)); }
    T* weights(int part, Index set) { return sums_.get() + (part * sets_ + set) * set_size_; }
    T* bias(int part, Index set) { return weights(part, set) + rows_ * width_; }

    void add_to(Index set, T* w_self, T* w_neigh, T* bias) {
        for (int part = 0; part < parts_; ++part) {
            const T* sum = weights(part, set);
            for (Index i = 0; i < rows_; ++i) {
                T* row = i < d_ ? w_self + i * d_ : w_neigh + (i - d_) * d_;
                for (Index j = 0; j < d_; ++j) row[j] += sum[i * width_ + j];
            }
            if (bias)
                for (Index j = 0; j < d_; ++j) bias[j] += sum[rows_ * width_ + j];
        }
    }

  private:
    Index d_, rows_, width_, set_size_, sets_;
    int parts_;
    Buffer<T> sums_;
};

}  // namespace adgn
