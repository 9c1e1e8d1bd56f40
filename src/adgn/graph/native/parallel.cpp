#include "parallel.hpp"

#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

#if !defined(_WIN32)
#include <pthread.h>
#endif

namespace adgn {
namespace {

std::atomic<TeamRunner> team_runner{nullptr};

#if !defined(_WIN32)
// A forked child has the team's records but not its threads, and would wait for them for ever. Set
// up when the library is loaded, where no guard can be held at the moment of a fork.
const int prepared_for_forks = pthread_atfork(nullptr, nullptr, [] { team_runner = nullptr; });
#endif

struct Job {
    Part work;
    void* context;
    int parts;
    std::atomic<int> next_part{0};
    std::atomic<int> next_worker{0};
};

void take_parts(void* data) {
    Job& job = *static_cast<Job*>(data);
    const int worker = job.next_worker.fetch_add(1);
    for (int part; (part = job.next_part.fetch_add(1)) < job.parts;)
        job.work(job.context, part, worker);
}

void run_on_own_threads(Job& job, int threads) {
    std::vector<std::thread> others;
    others.reserve(std::size_t(threads - 1));
    try {
        for (int i = 1; i < threads; ++i) others.emplace_back(take_parts, &job);
    } catch (const std::system_error&) {
        // The system gives no more threads; those that there are do the work.
    }
    take_parts(&job);
    for (std::thread& other : others) other.join();
}

}  // namespace

void set_team_runner(TeamRunner runner) { team_runner = runner; }

void run_parts(int parts, int threads, Part work, void* context) {
    Job job{work, context, parts};
    threads = std::min(threads, parts);
    const TeamRunner run_on_team = team_runner;
    if (threads <= 1)
        take_parts(&job);
    else if (run_on_team)
        run_on_team(take_parts, &job, unsigned(threads), 0);
    else
        run_on_own_threads(job, threads);
}

}  // namespace adgn
