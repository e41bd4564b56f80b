// The one way for work to get onto a stream.
#ifndef MLAP_CANN_RUNTIME_STREAM_QUEUE_H_
#define MLAP_CANN_RUNTIME_STREAM_QUEUE_H_

#include <functional>
#include <string>

#include "acl/acl_base.h"

namespace mlap::cann {

// What a task ends with. A code other than 0 and its text are reported by the next synchronisation of the stream.
struct TaskResult {
  aclError code = 0;
  std::string text;
};

// Queues `task` on `stream` (null: the current context's default stream), to run on the stream's thread after all tasks
// queued before. An exception that leaves the task becomes its result. The task, and what it holds, is destroyed once
// it has run or has been dropped.
//
// Returns 0, or the refusal's code with its text recorded: 107002 without a context, 107003 for a stream of another
// context, 107017 for what is no live stream, 207008 if the stream's thread cannot be started. Thread-safe.
aclError EnqueueOnStream(aclrtStream stream, std::function<TaskResult()> task);

// For a launch that has nothing to run: what EnqueueOnStream says of the stream. Nothing is queued, as nobody could
// tell when it is done.
aclError RequireLaunchStream(aclrtStream stream);

}  // namespace mlap::cann

#endif  // MLAP_CANN_RUNTIME_STREAM_QUEUE_H_
