// Contexts, and mlap_run.
#include <atomic>
#include <memory>
#include <string>

#include "api/api_function.h"
#include "api/handle_registry.h"
#include "api/layer_weights.h"
#include "api/page_memory.h"
#include "api/run_args_check.h"
#include "base/float_environment.h"
#include "core/prolog_plan.h"
#include "core/prolog_run.h"
#include "cpu/dispatch.h"
#include "mlaprolog/mlaprolog.h"
#include "parallel/thread_pool.h"

namespace mlap {
namespace {

struct Context {
  Context() = default;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() {
    // A child process leaves what its parent's threads hold.
    if (pool != nullptr && pool->IsFromBeforeFork()) static_cast<void>(pool.release());
  }

  KernelChoice kernels;
  std::unique_ptr<ThreadPool> pool;
  PageMemory workspace;
  std::atomic<uint64_t> workspace_bytes{0};
  std::atomic<bool> is_busy{false};
};

using ContextTable = HandleTable<mlap_context, Context>;

ContextTable& Contexts() {
  // Never destroyed: static objects of the program may still hold handles when this library's are.
  static ContextTable* const kTable = new ContextTable(HandleKind::kContext);
  return *kTable;
}

// Holds a context for one call, if no other call holds it.
class ContextUse {
 public:
  explicit ContextUse(Context* context) : context_(context) {
    is_ours_ = !context->is_busy.exchange(true, std::memory_order_acquire);
  }
  ~ContextUse() {
    if (is_ours_) context_->is_busy.store(false, std::memory_order_release);
  }
  ContextUse(const ContextUse&) = delete;
  ContextUse& operator=(const ContextUse&) = delete;

  bool is_ours() const { return is_ours_; }

 private:
  Context* context_;
  bool is_ours_;
};

mlap_status FailUnknown(const char* function, const void* handle) {
  return FailWith(MLAP_INVALID_ARGUMENT, std::string(function) +
                                             ": context: expected one of mlap_context_create, found " +
                                             (handle == nullptr ? "null" : "one that was destroyed or never made") +
                                             "; make one, and destroy it after the last call");
}

mlap_status FailBusy(const char* function) {
  return FailWith(MLAP_BUSY, std::string(function) +
                                 ": context: expected one that no call is using, found one inside another call; give "
                                 "each thread a context of its own");
}

mlap_status Create(const mlap_context_args& args, mlap_context** out) {
  constexpr const char* kFunction = "mlap_context_create";
  constexpr int kMostThreads = 1024;
  auto context = std::make_shared<Context>();
  Status status;
  if (args.max_isa == nullptr) {
    const KernelChoice* choice = nullptr;
    status = ProcessKernels(&choice);
    context->kernels = *choice;
  } else {
    status = ChooseKernels(args.max_isa, &context->kernels, "max_isa");
  }
  int num_threads = args.num_threads;
  if (status.ok() && num_threads == 0) status = ConfiguredThreads(&num_threads);
  if (status.ok() && (num_threads < 1 || num_threads > kMostThreads)) {
    status = Status(StatusCode::kInvalidArgument, "num_threads: expected 1 to 1024, or 0 for the default, found " +
                                                      std::to_string(num_threads) + "; use 0");
  }
  if (!status.ok()) return FailFunction(kFunction, status);
  context->pool = std::make_unique<ThreadPool>(num_threads);
  *out = Contexts().Add(std::move(context));
  return MLAP_OK;
}

mlap_status Run(mlap_context* handle, const mlap_weights* weights_handle, const mlap_run_args& args) {
  constexpr const char* kFunction = "mlap_run";
  const std::shared_ptr<Context> context = Contexts().Find(handle);
  if (context == nullptr) return FailUnknown(kFunction, handle);
  const std::shared_ptr<LayerWeights> weights = ProcessWeights().Find(weights_handle);
  if (weights == nullptr) return FailUnknownWeights(kFunction, weights_handle);
  const ContextUse use(context.get());
  if (!use.is_ours()) return FailBusy(kFunction);

  const DefaultFloatEnvironment environment;
  BoundCall call;
  Status status = BindRunArgs(*weights, args, &call);
  PrologPlan plan;
  if (status.ok()) {
    status = PlanProlog(call.args.shape, call.args.mode, context->pool->num_workers(), &plan,
                        context->kernels.table.task_columns);
  }
  if (!status.ok()) return FailFunction(kFunction, status);
  if (call.args.shape.tokens == 0) return MLAP_OK;

  const uint64_t needed = plan.workspace_bytes + call.CopyBytes();
  if (needed > context->workspace.num_bytes()) {
    context->workspace.Allocate(needed);
    context->workspace_bytes.store(needed, std::memory_order_relaxed);
  }
  call.GatherInputs(context->workspace.data() + plan.workspace_bytes);
  StageTimes times;
  status = RunProlog(call.args, plan, context->kernels.table, context->pool.get(), context->workspace.data(), &times);
  if (!status.ok()) return FailFunction(kFunction, status);
  call.ScatterOutputs();
  return MLAP_OK;
}

}  // namespace
}  // namespace mlap

mlap_status mlap_context_create(const mlap_context_args* args, mlap_context** context) {
  constexpr const char* kFunction = "mlap_context_create";
  return mlap::Guarded(kFunction, [&] {
    const mlap_context_args defaults = {sizeof(mlap_context_args), 0, nullptr};
    mlap_status status = mlap::CheckStructSize(kFunction, "args", args != nullptr ? args : &defaults);
    if (status == MLAP_OK) status = mlap::CheckPlace(kFunction, "context", context);
    return status == MLAP_OK ? mlap::Create(args != nullptr ? *args : defaults, context) : status;
  });
}

mlap_status mlap_context_destroy(mlap_context* context) {
  constexpr const char* kFunction = "mlap_context_destroy";
  return mlap::Guarded(kFunction, [&] {
    if (context == nullptr) return MLAP_OK;
    const std::shared_ptr<mlap::Context> found = mlap::Contexts().Find(context);
    if (found == nullptr) return mlap::FailUnknown(kFunction, context);
    const mlap::ContextUse use(found.get());
    if (!use.is_ours()) return mlap::FailBusy(kFunction);
    mlap::Contexts().Remove(context);
    return MLAP_OK;
  });
}

mlap_status mlap_context_query(const mlap_context* context, mlap_context_facts* facts) {
  constexpr const char* kFunction = "mlap_context_query";
  return mlap::Guarded(kFunction, [&] {
    const mlap_status status = mlap::CheckStructSize(kFunction, "facts", facts);
    if (status != MLAP_OK) return status;
    const std::shared_ptr<mlap::Context> found = mlap::Contexts().Find(context);
    if (found == nullptr) return mlap::FailUnknown(kFunction, context);
    facts->num_threads = found->pool->num_workers();
    facts->isa = found->kernels.isa;
    facts->workspace_bytes = found->workspace_bytes.load(std::memory_order_relaxed);
    return MLAP_OK;
  });
}

mlap_status mlap_run(mlap_context* context, const mlap_weights* weights, const mlap_run_args* args) {
  return mlap::Guarded("mlap_run", [&] {
    const mlap_status status = mlap::CheckStructSize("mlap_run", "args", args);
    return status == MLAP_OK ? mlap::Run(context, weights, *args) : status;
  });
}
