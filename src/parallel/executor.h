// Who runs the tasks of a parallel region.
#ifndef MLAP_PARALLEL_EXECUTOR_H_
#define MLAP_PARALLEL_EXECUTOR_H_

#include <cstdint>
#include <type_traits>

namespace mlap {

// A non-owning reference to a callable task body; valid while the callable lives.
class TaskBody {
 public:
  // `fn(task, worker)`: task in [0, num_tasks), worker in [0, num_workers); a worker runs one task at a time.
  template <typename Fn>
  TaskBody(const Fn& fn)  // NOLINT(google-explicit-constructor): a parameter type
      : object_(&fn),
        call_([](const void* object, int64_t task, int worker) { (*static_cast<const Fn*>(object))(task, worker); }) {}

  void operator()(int64_t task, int worker) const { call_(object_, task, worker); }

 private:
  const void* object_;
  void (*call_)(const void*, int64_t, int);
};

class Executor {
 public:
  virtual ~Executor() = default;
  virtual int num_workers() const = 0;
  // Runs every task once and returns when all are done; what they wrote is visible to the caller. Tasks start in
  // ascending order, on any worker. The body must not throw and must not call ParallelFor on the same executor.
  virtual void ParallelFor(int64_t num_tasks, TaskBody body) = 0;
};

// Runs everything on the calling thread.
class SerialExecutor final : public Executor {
 public:
  int num_workers() const override { return 1; }
  void ParallelFor(int64_t num_tasks, TaskBody body) override {
    for (int64_t task = 0; task < num_tasks; ++task) body(task, 0);
  }
};

}  // namespace mlap

#endif  // MLAP_PARALLEL_EXECUTOR_H_
