// Timing of work that all threads do at once.
#ifndef MLAP_BENCH_THREAD_TIMING_H_
#define MLAP_BENCH_THREAD_TIMING_H_

#include <omp.h>

#include <chrono>

namespace mlap::bench {

// Seconds from the common start of all threads to the end of the last one. `body` takes (thread, number of threads).
template <typename Body>
double TimeOnAllThreads(int num_threads, const Body& body) {
  using Clock = std::chrono::steady_clock;
  double seconds = 0.0;
#pragma omp parallel num_threads(num_threads)
  {
    Clock::time_point start;
#pragma omp barrier
#pragma omp master
    start = Clock::now();
    body(omp_get_thread_num(), omp_get_num_threads());
#pragma omp barrier
#pragma omp master
    seconds = std::chrono::duration<double>(Clock::now() - start).count();
  }
  return seconds;
}

// Ends the threads of OpenMP, which spin for a while after each region.
inline void EndOpenMpThreads() { omp_pause_resource_all(omp_pause_soft); }

}  // namespace mlap::bench

#endif  // MLAP_BENCH_THREAD_TIMING_H_
