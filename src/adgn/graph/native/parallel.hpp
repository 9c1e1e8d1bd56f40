// Work in parts, on the threads that torch already has.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>

#include "kernels.hpp"

namespace adgn {

// OpenMP's entry for "run this on so many threads", as GCC's runtime and LLVM's both have it.
using TeamRunner = void (*)(void (*)(void*), void*, unsigned threads, unsigned flags);

// Uses the team of the OpenMP runtime that torch has loaded; without one, threads of our own.
void set_team_runner(TeamRunner runner);

using Part = void (*)(void* context, int part, int worker);

// Calls work(context, part, worker) for every part, on at most `threads` workers at once. What a
// part computes must not depend on the worker: so results do not depend on the number of threads.
// A forked child has no team: there they run on threads of our own.
void run_parts(int parts, int threads, Part work, void* context);

template <class Work>
void run_parts(int parts, int threads, Work& work) {
    run_parts(
        parts, threads,
        [](void* context, int part, int worker) { (*static_cast<Work*>(context))(part, worker); },
        &work);
}

// An array on cache-line borders, freed with its owner.
template <class T>
class Buffer {
  public:
    explicit Buffer(Index size) : data_(static_cast<T*>(allocate(size))) {}
    ~Buffer() { ::operator delete(data_, std::align_val_t(64)); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    T* get() const { return data_; }

  private:
    static void* allocate(Index size) {
        if (size < 0 || size > Index(PTRDIFF_MAX / sizeof(T))) throw std::bad_alloc();
        return ::operator new(std::size_t(size) * sizeof(T), std::align_val_t(64));
    }
    T* data_;
};

}  // namespace adgn
