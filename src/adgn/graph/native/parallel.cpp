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

TeamRunner team_runner = nullptr;
std::atomic<bool> team_used{false};
// Set in a child forked after the team was used: the child has the team's records but not its
// threads, and would wait for them for ever.
std::atomic<bool> team_lost{false};

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

void set_team_runner(TeamRunner runner) {
    static const bool registered = [] {
#if !defined(_WIN32)
        pthread_atfork(nullptr, nullptr, [] {
            if (team_used) team_lost = true;
        });
#endif
        return true;
    }();
    (void)registered;
    team_runner = runner;
}

void run_parts(int parts, int threads, Part work, void* context) {
    Job job{work, context, parts};
    threads = std::min(threads, parts);
    if (threads <= 1 || team_lost) {
        take_parts(&job);
    } else if (team_runner) {
        team_used = true;
        team_runner(take_parts, &job, unsigned(threads), 0);
    } else {
        run_on_own_threads(job, threads);
    }
}

}  // namespace adgn
