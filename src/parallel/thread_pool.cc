#include "parallel/thread_pool.h"

#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>

#include "base/float_environment.h"

namespace mlap {
namespace {

// Long enough to bridge the gap between the calls of one who waits for each, short enough to leave no trace when idle.
constexpr auto kSpinTime = std::chrono::microseconds(200);

inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

// Spins until `done` holds or the spin time is over; returns whether it holds. Whoever `yields` its processor as it
// waits leaves it to a thread that has something to do.
template <typename Done>
bool SpinUntil(bool yields, Done done) {
  const auto deadline = std::chrono::steady_clock::now() + kSpinTime;
  do {
    for (int i = 0; i < 64; ++i) {
      if (done()) return true;
      if (yields) {
        sched_yield();
      } else {
        Pause();
      }
    }
  } while (std::chrono::steady_clock::now() < deadline);
  return false;
}

// The processors that the process may use, whatever single threads are pinned to.
bool FindProcessCpus(cpu_set_t* cpus) { return sched_getaffinity(getpid(), sizeof(*cpus), cpus) == 0; }

// Whether threads have to share the processors of the process.
bool IsCrowded(int num_threads) {
  cpu_set_t cpus;
  return FindProcessCpus(&cpus) && CPU_COUNT(&cpus) < num_threads;
}

// Lets the calling thread run on every processor of the process.
void RunAnywhere() {
  cpu_set_t cpus;
  if (FindProcessCpus(&cpus)) sched_setaffinity(0, sizeof(cpus), &cpus);
}

}  // namespace

ThreadPool::ThreadPool(int num_workers) : process_(getpid()), is_crowded_(IsCrowded(num_workers)) {
  // Signals of the program are none of the pool's business: its threads start, and stay, with all of them blocked.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    threads_.reserve(static_cast<size_t>(std::max(num_workers, 1)));
    for (int worker = 1; worker < num_workers; ++worker) {
      threads_.emplace_back([this, worker] { WorkerLoop(worker); });
    }
  } catch (const std::exception&) {
    // No more threads or no more memory: fewer workers compute the same results.
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard<std::mutex> lock(sleep_mutex_);
    stop_.store(true);
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool ThreadPool::IsFromBeforeFork() const { return getpid() != process_; }

void ThreadPool::RunTasks(int worker) {
  const int64_t num_tasks = num_tasks_;
  const TaskBody& body = *body_;
  for (int64_t task = next_task_.fetch_add(1, std::memory_order_relaxed); task < num_tasks;
       task = next_task_.fetch_add(1, std::memory_order_relaxed)) {
    body(task, worker);
  }
}

// Waits for a region later than `seen`; false when the pool stops.
bool ThreadPool::AwaitRegion(uint64_t seen) {
  const auto changed = [&] { return region_.load() != seen || stop_.load(); };
  if (!SpinUntil(is_crowded_, changed)) {
    std::unique_lock<std::mutex> lock(sleep_mutex_);
    sleepers_.fetch_add(1);
    wake_.wait(lock, changed);
    sleepers_.fetch_sub(1);
    lock.unlock();
    RunAnywhere();  // where it woke was chosen for it; from here on the system may move it again
  }
  return region_.load() != seen;
}

void ThreadPool::WorkerLoop(int worker) {
  const DefaultFloatEnvironment environment;
  // The thread that happened to start the pool may be pinned to a CPU; the pool is the process's.
  RunAnywhere();
  uint64_t seen = 0;
  while (AwaitRegion(seen)) {
    ++seen;
    RunTasks(worker);
    workers_busy_.fetch_sub(1, std::memory_order_acq_rel);
  }
}

// A thread that wakes may be put on the processor of the one that wakes it, and shares it for milliseconds until the
// system moves it. The calling thread's processor is taken; the others of the process are as good as before.
void ThreadPool::KeepWorkersOffThisCpu() {
  cpu_set_t cpus;
  if (!FindProcessCpus(&cpus)) return;
  const int own = sched_getcpu();
  if (own < 0 || own >= CPU_SETSIZE || CPU_COUNT(&cpus) <= static_cast<int>(threads_.size())) return;
  CPU_CLR(own, &cpus);
  for (std::thread& thread : threads_) pthread_setaffinity_np(thread.native_handle(), sizeof(cpus), &cpus);
}

void ThreadPool::ParallelFor(int64_t num_tasks, TaskBody body) {
  if (num_tasks <= 0) return;
  if (threads_.empty() || num_tasks == 1 || IsFromBeforeFork()) {
    for (int64_t task = 0; task < num_tasks; ++task) body(task, 0);
    return;
  }
  std::lock_guard<std::mutex> owner(region_owner_);
  body_ = &body;
  num_tasks_ = num_tasks;
  next_task_.store(0, std::memory_order_relaxed);
  workers_busy_.store(static_cast<int>(threads_.size()), std::memory_order_relaxed);
  region_.fetch_add(1);  // sequentially consistent: ordered against the sleepers' count
  if (sleepers_.load() > 0) {
    KeepWorkersOffThisCpu();
    // The empty critical section closes the gap between a sleeper's check of the region and its wait.
    { std::lock_guard<std::mutex> lock(sleep_mutex_); }
    wake_.notify_all();
  }
  RunTasks(0);
  // Every worker passes through every region, so that none can still look at this region's tasks afterwards.
  while (workers_busy_.load(std::memory_order_acquire) != 0) {
    const auto done = [&] { return workers_busy_.load(std::memory_order_acquire) == 0; };
    if (!SpinUntil(is_crowded_, done)) std::this_thread::yield();
  }
}

}  // namespace mlap
