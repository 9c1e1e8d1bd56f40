// Steps of any scheme that adds up rates: Runge-Kutta, multi-step and wave equations.
#pragma once

#include "integrate.hpp"

namespace adgn {

// A rate is taken at the states that the one before it led to, the first at the given ones. Rate e
// leads to base + Σ_h factor[e, h] rate[e - h], with `base` the states before the step. With a
// velocity: velocity += factor[e, 0] rate[e], and it leads to base + position velocity.
struct Scheme {
    Index rates;
    Index history;                 // how many rates take part at most; 1 with a velocity
    const double* factor;          // [rates, history]
    const std::uint8_t* ends_step; // [rates]: whether what it leads to is the start of a new step
    int has_velocity;
    double position;
};

// What a forward pass keeps for the backward pass; all null where no gradient is needed.
template <class T>
struct KeptRates {
    T* rates;   // [rates, nodes, width]; may be null with a velocity and no activation
    T* starts;  // [steps, nodes, width]: the states before each step
};

// Rows are as those of `integrate_forward`. velocity: as x, changed in place; null where there is
// none. spare: [4 + history, nodes, width], without blocks only.
template <class T>
void scheme_forward(const Integration<T>&, const Scheme&, const T* x, Index row_step, T* velocity,
                    T* out, T* spare, const KeptRates<T>&);

// grad_velocity: that in the last velocity, changed to that in the first one; null where there is
// none. spare: [2 + history, nodes, width], without blocks only.
template <class T>
void scheme_backward(const Integration<T>&, const Scheme&, const T* grad_out, Index row_step,
                     T* grad_velocity, T* grad_x, T* spare, const KeptRates<T>&, T* grad_w_self,
                     T* grad_w_neigh, T* grad_bias);

}  // namespace adgn
