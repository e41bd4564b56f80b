// A small legal call of the native interface, to be run as it is or damaged first.
#ifndef MLAP_TESTS_API_NATIVE_CALL_H_
#define MLAP_TESTS_API_NATIVE_CALL_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "mlaprolog/mlaprolog.h"
#include "support/guarded_buffer.h"

namespace mlap::test {

struct CallOptions {
  mlap_weight_quant weights = MLAP_WEIGHTS_BF16;
  mlap_kv_quant kv = MLAP_KV_BF16;
  mlap_cache_mode mode = MLAP_PA_BSND;
  bool has_sequences = false;  // lead = (B, S) instead of (T)
  bool has_low_rank = true;
  int64_t tokens = 3;
  int64_t pages = 2;
};

// For the names of parameterised tests, and how those tests print their parameter.
std::string CallName(const testing::TestParamInfo<CallOptions>& parameter);
void PrintTo(const CallOptions& options, std::ostream* out);

// Every scenario in PA_BSND, and with the first of each kind of weights every cache mode, with both kinds of lead where
// both are legal.
std::vector<CallOptions> AllCalls();

// A tensor of the weights, of the call or of its intermediates, by the name the texts of failures use.
struct NamedTensor {
  std::string name;
  mlap_tensor* tensor;
};

// The call and its memory. Every tensor ends at an inaccessible page. Inputs are random, gammas 1, caches and outputs
// filled with a pattern; all optional outputs and all intermediates of the scenario are wanted.
class NativeCall {
 public:
  static constexpr int64_t kHidden = 64, kQRank = 32, kHeads = 2, kNope = 4, kRope = 32, kKvRank = 160, kPageSlots = 4;
  static constexpr uint8_t kPattern = 0xA5;

  explicit NativeCall(const CallOptions& options);
  ~NativeCall();
  NativeCall(const NativeCall&) = delete;
  NativeCall& operator=(const NativeCall&) = delete;

  // The handle for the weights, made by the first call that asks; null, with mlap_last_error, if it is refused.
  mlap_weights* Weights();

  // Makes the weights if there are none, then runs.
  mlap_status RunReference();
  mlap_status Run(mlap_context* context);

  // The tensors that the scenario requires; the optional ones it may have; those it must not have.
  std::vector<NamedTensor> Required() { return WithUse(Use::kRequired); }
  std::vector<NamedTensor> Optional() { return WithUse(Use::kOptional); }
  std::vector<NamedTensor> Forbidden() { return WithUse(Use::kForbidden); }
  std::vector<NamedTensor> Given();
  static bool IsOfWeights(const std::string& name);
  bool IsWritten(const std::string& name) const;

  // The bytes of everything the call may write.
  std::map<std::string, std::vector<uint8_t>> WritableBytes() const;

  // Elements of a tensor in binary32.
  std::vector<float> Values(const std::string& name) const;
  template <class T>
  T* Data(const std::string& name) {
    return buffers_.at(name).as<T>();
  }
  mlap_tensor* Tensor(const std::string& name);
  bool Has(const std::string& name) const { return buffers_.count(name) != 0; }

  mlap_weights_args weights_args;
  mlap_run_args args;
  mlap_intermediates intermediates = {};
  mlap_reference_args reference = {};

 private:
  enum class Use { kRequired, kOptional, kForbidden };
  struct Entry {
    std::string name;
    mlap_tensor* tensor;
    Use use;
    bool is_written;
  };

  // Adds a tensor, with contiguous memory of its own unless it is forbidden.
  void Add(const std::string& name, mlap_tensor* tensor, Use use, mlap_dtype dtype, std::vector<int64_t> dims,
           bool is_written = false);
  void AddWeights();
  void AddInputs();
  void AddOutputs();
  void FillInputs();
  std::vector<NamedTensor> WithUse(Use use);
  std::vector<int64_t> Lead(std::vector<int64_t> dims) const;

  bool IsFull() const { return options_.weights >= MLAP_WEIGHTS_INT8; }
  bool IsMx() const { return options_.weights == MLAP_WEIGHTS_MXFP8; }
  mlap_dtype EightBit() const;

  CallOptions options_;
  std::vector<Entry> entries_;
  std::map<std::string, GuardedBuffer> buffers_;
  std::map<std::string, mlap_dtype> dtypes_;
  mlap_weights* weights_ = nullptr;
};

// The size of an element.
size_t DtypeBytes(mlap_dtype dtype);

}  // namespace mlap::test

#endif  // MLAP_TESTS_API_NATIVE_CALL_H_
