#include "cann/ops/process_pool.h"

#include "parallel/thread_pool.h"

namespace mlap::cann {

Executor* ProcessPool(int num_threads) {
  // Never destroyed: streams may still run when the program's static objects are.
  static ThreadPool* const kPool = new ThreadPool(num_threads);
  return kPool;
}

}  // namespace mlap::cann
