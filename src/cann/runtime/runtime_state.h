// Which contexts and streams exist, and which context each thread works in.
#ifndef MLAP_CANN_RUNTIME_RUNTIME_STATE_H_
#define MLAP_CANN_RUNTIME_RUNTIME_STATE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "acl/acl_rt.h"
#include "cann/runtime/handle_table.h"
#include "cann/runtime/work_queue.h"

namespace mlap::cann {

struct Stream {
  aclrtContext context = nullptr;
  bool is_default = false;
  WorkQueue queue;
};

struct Context {
  bool is_default = false;
  aclrtStream default_stream = nullptr;

  std::mutex options_mutex;
  std::map<int, int64_t> options;  // aclSysParamOpt -> value

  std::set<aclrtStream> streams;  // guarded by the state's mutex
};

// One per process, never destroyed: threads of streams may outlive `main`.
//
// A context owns its streams. Their lives change under mutex_ only, so that no stream can be added to a context that is
// going; waiting for a stream's work happens outside it.
class RuntimeState {
 public:
  static RuntimeState& Get();

  HandleTable<Stream>& streams() { return streams_; }
  HandleTable<Context>& contexts() { return contexts_; }

  // The calling thread's current context: its handle, live or not, and the context, null if it is not live.
  static aclrtContext CurrentHandle();
  static void SetCurrentHandle(aclrtContext context);
  std::shared_ptr<Context> CurrentContext();

  // Adds one user of the device and makes the default context current.
  void SetDevice();
  // Takes one user back, or all of them; the last one leaves no context. False if the device is not set.
  bool ResetDevice(bool force);
  // Destroys every context.
  void ResetEverything();

  aclrtContext CreateContext();
  // False if another thread was faster.
  bool DestroyContext(aclrtContext context);

  // Null if the context is not live any more.
  aclrtStream CreateStream(aclrtContext context);
  // False if another thread was faster.
  bool DestroyStream(aclrtStream stream, bool drop_queued);

 private:
  RuntimeState() = default;

  aclrtContext CreateContextLocked(bool is_default);
  aclrtStream CreateStreamLocked(aclrtContext handle, Context& context, bool is_default);
  // Takes the context and its streams out of the tables and appends the streams to `detached`, to be closed. Changes
  // nothing if it throws.
  void DetachContextLocked(aclrtContext handle, std::vector<std::shared_ptr<Stream>>* detached);
  std::vector<std::shared_ptr<Stream>> DetachAllLocked();

  std::mutex mutex_;
  uint64_t num_device_users_ = 0;
  aclrtContext default_context_ = nullptr;
  std::set<aclrtContext> live_contexts_;
  HandleTable<Context> contexts_{HandleKind::kContext};
  HandleTable<Stream> streams_{HandleKind::kStream};
};

// Finds the stream `stream` (null: the default stream) for the calling thread. Returns 0 or the code of a refusal that
// has been recorded for `function`: 107002, 107003 or 107017.
aclError FindStream(const char* function, aclrtStream stream, std::shared_ptr<Stream>* out);

// Finds the calling thread's current context, or records 107002 for `function`.
aclError FindCurrentContext(const char* function, std::shared_ptr<Context>* out);

// FindStream and WorkQueue::Push in one.
aclError PushOnStream(const char* function, aclrtStream stream, std::function<TaskResult()> task,
                      std::shared_ptr<Stream>* found = nullptr, uint64_t* ticket = nullptr);

// Waits for all streams of the device and reports their failures for `function`.
aclError SynchronizeAll(const char* function, int32_t timeout_ms);

// Records the failure a stream has to report, if any, and returns its code.
aclError ReportFailure(const char* function, Stream& stream);

// 107000, recorded for `function`, on the thread of any stream; 0 elsewhere.
aclError RefuseOnQueueThread(const char* function);

// 507899, recorded for `function`, in a process that was forked after streams had started threads; 0 elsewhere. To be
// called before anything is locked that a stream's thread may have held.
aclError RefuseAfterFork(const char* function);

// 100000, recorded for `function`, if `pointer` is null; else 0.
aclError RequirePointer(const char* function, const char* parameter, const void* pointer);

// 107000, recorded for `function`, if `timeout_ms` is below -1; else 0.
aclError RequireTimeout(const char* function, int32_t timeout_ms);

// 107017, recorded for `function`: `handle` is no live object of kind `expected`.
aclError RefuseHandle(const char* function, const char* parameter, const void* handle, HandleKind expected);

}  // namespace mlap::cann

#endif  // MLAP_CANN_RUNTIME_RUNTIME_STATE_H_
