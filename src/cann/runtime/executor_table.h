// The live aclOpExecutor handles.
#ifndef MLAP_CANN_RUNTIME_EXECUTOR_TABLE_H_
#define MLAP_CANN_RUNTIME_EXECUTOR_TABLE_H_

#include <memory>
#include <mutex>
#include <utility>

#include "cann/runtime/handle_table.h"
#include "cann/runtime/op_executor.h"

namespace mlap::cann {

struct LiveExecutor {
  explicit LiveExecutor(OpExecutor published) : executor(std::move(published)) {}

  std::mutex mutex;  // guards `executor`, whose slots and repeatable flag change
  OpExecutor executor;
  // Held during launch, so that one executor in two threads is slow, not wrong. Apart from `mutex`, because a launch
  // may take long.
  std::mutex launch_mutex;
};

HandleTable<LiveExecutor>& ExecutorTable();

}  // namespace mlap::cann

#endif  // MLAP_CANN_RUNTIME_EXECUTOR_TABLE_H_
