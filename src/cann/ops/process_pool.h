// The thread pool that all streams of the process share.
#ifndef MLAP_CANN_OPS_PROCESS_POOL_H_
#define MLAP_CANN_OPS_PROCESS_POOL_H_

#include "parallel/executor.h"

namespace mlap::cann {

// Starts the pool on the first call, with `num_threads` workers; later calls return the same pool. It lives until the
// process ends.
Executor* ProcessPool(int num_threads);

}  // namespace mlap::cann

#endif  // MLAP_CANN_OPS_PROCESS_POOL_H_
