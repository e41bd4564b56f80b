#include "parallel_for.h"

#include <mlaprolog/mlaprolog.h>

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

namespace mlap::tools {

void ParallelFor(int64_t count, const std::function<void(int64_t, int64_t)>& body,
                 const std::function<void(int64_t)>& progress) {
  constexpr int64_t kParts = 64;
  const int64_t part = std::max<int64_t>(1, count / kParts);
  std::atomic<int64_t> next = 0;
  std::atomic<int64_t> done = 0;
  const auto work = [&](bool reports) {
    for (int64_t begin = next.fetch_add(part); begin < count; begin = next.fetch_add(part)) {
      const int64_t end = std::min(begin + part, count);
      body(begin, end);
      const int64_t so_far = done.fetch_add(end - begin) + (end - begin);
      if (reports && progress) progress(so_far);
    }
  };
  int num_threads = 1;
  if (mlap_num_threads(&num_threads) != MLAP_OK) num_threads = 1;
  std::vector<std::thread> helpers;
  try {
    while (count > part && static_cast<int>(helpers.size()) + 1 < num_threads) helpers.emplace_back(work, false);
  } catch (const std::system_error&) {
    // Fewer threads do the same work.
  }
  work(true);
  for (std::thread& helper : helpers) helper.join();
}

}  // namespace mlap::tools
