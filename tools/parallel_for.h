// A loop over a range on all CPUs the process may use.
#ifndef MLAP_TOOLS_PARALLEL_FOR_H_
#define MLAP_TOOLS_PARALLEL_FOR_H_

#include <cstdint>
#include <functional>

namespace mlap::tools {

// Calls body(begin, end) for consecutive parts of [0, count) on several threads and returns when all are done. `body`
// does not throw. `progress`, which may be empty, is called from the calling thread with the number of items that are
// done.
void ParallelFor(int64_t count, const std::function<void(int64_t, int64_t)>& body,
                 const std::function<void(int64_t)>& progress = {});

}  // namespace mlap::tools

#endif  // MLAP_TOOLS_PARALLEL_FOR_H_
