// A small legal call of mlap_reference_run, to be run as it is or damaged first.
#ifndef MLAP_TESTS_API_REFERENCE_CALL_H_
#define MLAP_TESTS_API_REFERENCE_CALL_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "mlaprolog/mlaprolog.h"
#include "support/guarded_buffer.h"

namespace mlap::test {

enum class Scenario { kNonQuant, kPartial, kPartialInt8Caches };

struct CallOptions {
  Scenario scenario = Scenario::kNonQuant;
  bool has_sequences = false;  // lead = (B, S) instead of (T)
  int64_t tokens = 3;
  int64_t pages = 2;
};

// For the names of parameterised tests, and how those tests print their parameter.
std::string CallName(const testing::TestParamInfo<CallOptions>& parameter);
void PrintTo(const CallOptions& options, std::ostream* out);

// Every scenario with both kinds of lead.
std::vector<CallOptions> AllCalls();

// A tensor of the call or of its intermediates, by the name the texts of failures use.
struct NamedTensor {
  std::string name;
  mlap_tensor* tensor;
};

// The call and its memory. Every tensor ends at an inaccessible page. Inputs are random, gammas 1, caches and outputs
// filled with a pattern, and all intermediates of the scenario are wanted.
class ReferenceCall {
 public:
  static constexpr int64_t kHidden = 8, kQRank = 6, kHeads = 2, kNope = 4, kRope = 2, kKvRank = 5, kPageSlots = 4;
  static constexpr uint8_t kPattern = 0xA5;

  explicit ReferenceCall(const CallOptions& options);
  ReferenceCall(const ReferenceCall&) = delete;
  ReferenceCall& operator=(const ReferenceCall&) = delete;

  mlap_status Run() { return mlap_reference_run(&args); }

  // The tensors that the scenario requires; the optional ones it may have; those it must not have.
  std::vector<NamedTensor> Required();
  std::vector<NamedTensor> Optional();
  std::vector<NamedTensor> Forbidden();
  std::vector<NamedTensor> WantedIntermediates();

  // The bytes of everything the call may write.
  std::map<std::string, std::vector<uint8_t>> WritableBytes() const;

  // Elements of a tensor in binary32.
  std::vector<float> Values(const std::string& name) const;
  template <class T>
  T* Data(const std::string& name) {
    return buffers_.at(name).as<T>();
  }

  mlap_prolog_args args = {};
  mlap_intermediates intermediates = {};

 private:
  // Gives a tensor contiguous memory of its own.
  void Place(const std::string& name, mlap_tensor* tensor, mlap_dtype dtype, std::vector<int64_t> dims);
  void FillInputs();

  CallOptions options_;
  std::map<std::string, GuardedBuffer> buffers_;
  std::map<std::string, mlap_dtype> dtypes_;
};

}  // namespace mlap::test

#endif  // MLAP_TESTS_API_REFERENCE_CALL_H_
