// Which kernels this processor can run, decided once.
#include "kernels.hpp"
#include "target.hpp"

namespace adgn {

namespace baseline {
extern const Kernels<float> single_kernels;
extern const Kernels<double> double_kernels;
}  // namespace baseline

#if ADGN_X86
namespace avx2 {
extern const Kernels<float> single_kernels;
extern const Kernels<double> double_kernels;
}  // namespace avx2
namespace avx512 {
extern const Kernels<float> single_kernels;
extern const Kernels<double> double_kernels;
}  // namespace avx512
#endif

namespace {

struct Choice {
    const char* name;
    const Kernels<float>* single_kernels;
    const Kernels<double>* double_kernels;
};

const Choice choices[] = {
#if ADGN_X86
    {"avx512", &avx512::single_kernels, &avx512::double_kernels},
    {"avx2", &avx2::single_kernels, &avx2::double_kernels},
#endif
    {"baseline", &baseline::single_kernels, &baseline::double_kernels},
};

bool runs_here(const char* name) {
#if ADGN_X86
    __builtin_cpu_init();
    const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (std::strcmp(name, "avx2") == 0) return has_avx2;
    if (std::strcmp(name, "avx512") == 0)
        return has_avx2 && __builtin_cpu_supports("avx512f") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("avx512bw");
#endif
    return std::strcmp(name, "baseline") == 0;
}

const Choice& best() {
    for (const Choice& choice : choices)
        if (runs_here(choice.name)) return choice;
    return choices[sizeof choices / sizeof choices[0] - 1];
}

const Choice* chosen = &best();

}  // namespace

template <>
const Kernels<float>& kernels<float>() {
    return *chosen->single_kernels;
}
template <>
const Kernels<double>& kernels<double>() {
    return *chosen->double_kernels;
}
const char* instruction_set() { return chosen->name; }

bool use_instruction_set(const char* name) {
    for (const Choice& choice : choices) {
        if (std::strcmp(choice.name, name) == 0 && runs_here(name)) {
            chosen = &choice;
            return true;
        }
    }
    return false;
}

}  // namespace adgn
