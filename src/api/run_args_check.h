// From the arguments of the C interface to the engine's.
#ifndef MLAP_API_RUN_ARGS_CHECK_H_
#define MLAP_API_RUN_ARGS_CHECK_H_

#include <cstdint>

#include "api/layer_weights.h"
#include "api/tensor_checks.h"
#include "base/prolog_args.h"
#include "base/status.h"
#include "mlaprolog/mlaprolog.h"

namespace mlap {

// A call of the engine. Strided tensors that the engine wants dense go through copies. Has no memory of its own.
class BoundCall {
 public:
  BoundCall() = default;
  BoundCall(const BoundCall&) = delete;
  BoundCall& operator=(const BoundCall&) = delete;

  PrologArgs args;

  // The memory that the copies need.
  uint64_t CopyBytes() const { return copy_bytes_; }

  // Copies the strided inputs to `memory`, of any alignment and CopyBytes bytes, and points args at the dense tensors
  // there, which outputs are, too.
  void GatherInputs(char* memory);

  // Copies the dense outputs to where they belong.
  void ScatterOutputs() const;

  // Makes `*pointer`, a member of args, the tensor's dense address, now or when it is gathered.
  template <class T>
  void Bind(const mlap_tensor& tensor, Access access, T** pointer) {
    BindAddress(tensor, access, pointer);
  }

 private:
  struct Copy {
    StridedView tensor;
    StridedView dense;
    Access access;
    void* pointer;  // to the member, which is a pointer to some type
  };
  static constexpr int kMostCopies = 24;  // more than a call has tensors

  void BindAddress(const mlap_tensor& tensor, Access access, void* pointer);

  Copy copies_[kMostCopies];
  int num_copies_ = 0;
  uint64_t copy_bytes_ = 0;
};

enum class CallParts { kAll, kInputsOnly };

// Checks attributes, presence, types, layouts, ranks, shapes, strides and sizes of every tensor; the first fault is
// described in the status, and nothing has been written. With kInputsOnly, caches, slots and outputs are not looked at.
Status BindRunArgs(const LayerWeights& weights, const mlap_run_args& args, BoundCall* call,
                   CallParts parts = CallParts::kAll);

}  // namespace mlap

#endif  // MLAP_API_RUN_ARGS_CHECK_H_
