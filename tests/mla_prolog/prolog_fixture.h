// A legal call of any version of the operator for any scenario, as data that a test can change before it is made.
#ifndef MLAP_TESTS_MLA_PROLOG_PROLOG_FIXTURE_H_
#define MLAP_TESTS_MLA_PROLOG_PROLOG_FIXTURE_H_

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "aclnn/acl_meta.h"
#include "aclnn/aclnn_status.h"
#include "scenario_table.h"
#include "support/guarded_buffer.h"

namespace mlap::prolog_test {

using test::Access;
using test::GuardedBuffer;
using test::UntouchableAddress;

struct Config {
  Scenario scenario = Scenario::kNonQuant;
  // Set while the first step runs, unless empty.
  std::string soc;
  std::string cache_mode = "PA_BSND";
  bool fused = true;  // tokens as (T), otherwise as (B, S)
  int64_t tokens = 2;
  int64_t batch = 1;
  int64_t seq = 2;
  int64_t hidden = 1024;  // He
  int64_t q_rank = 1536;  // Hcq
  int64_t heads = 1;      // N
  int64_t nope = 128;     // D
  int64_t rope = 64;      // Dr
  int64_t kv_rank = 512;  // Hckv
  int64_t block_num = 2;
  int64_t block_size = 16;
  bool nz_2d = false;  // weights as 2-D views, otherwise as 4-D ones
  // The lengths of the sequences of fused tokens in the PA_BLK modes; empty: two, if there are tokens for two.
  std::vector<int64_t> sequences;

  int64_t Tokens() const { return fused ? tokens : batch * seq; }
  int64_t Capacity() const { return IsTokens() ? Tokens() : block_num * block_size; }
  bool QuantizesCq() const { return scenario.weight_mode != 0; }
  bool IsFull() const { return scenario.weight_mode >= 2; }
  bool PerChannel() const { return scenario.kv_mode == 2; }
  bool PerTensor() const { return scenario.kv_mode == 1; }
  bool PerGroup() const { return scenario.kv_mode == 3; }
  bool Smooth() const { return scenario.smooth; }
  bool IsV3() const { return scenario.version == Version::kV3; }
  bool IsNzCache() const { return cache_mode == "PA_NZ" || cache_mode == "PA_BLK_NZ"; }
  bool IsBlocks() const { return cache_mode == "PA_BLK_BSND" || cache_mode == "PA_BLK_NZ"; }
  bool IsTokens() const { return cache_mode == "BSND" || cache_mode == "TND"; }
  // The elements of a row of kvCache.
  int64_t KvWidth() const { return PerGroup() ? kv_rank + 2 * rope + 4 * ((kv_rank + 127) / 128) : kv_rank; }
  std::vector<int64_t> Sequences() const;
  int64_t NumPages() const;  // that the sequences need

  Config& SetFused(int64_t t) {
    fused = true;
    tokens = t;
    return *this;
  }
  Config& SetBatchSeq(int64_t b, int64_t s) {
    fused = false;
    batch = b;
    seq = s;
    return *this;
  }
  std::string Name() const;
};

// Sizes that only MLAP_SOC=none admits, small enough for thousands of calls. All are multiples of what their layouts
// need, so that 4-D FRACTAL_NZ views exist.
Config TinyConfig(const Scenario& scenario, const std::string& cache_mode = "PA_BSND");
// Large enough that a call is cut into several pieces of work.
Config MediumConfig(const Scenario& scenario, const std::string& cache_mode = "PA_BSND");

// The legal forms of the tokens in a mode: fused, batches, or both. Each has `tokens` tokens, as batches of one or two.
std::vector<Config> FormsOf(Config config, int64_t tokens);

// The arguments of aclCreateTensor.
struct TensorDesc {
  bool null = false;
  std::vector<int64_t> dims;
  std::optional<std::vector<int64_t>> strides;
  aclDataType dtype = ACL_DT_UNDEFINED;
  aclFormat format = ACL_FORMAT_ND;
  int64_t offset = 0;
  std::vector<int64_t> storage_dims;
  void* data = nullptr;
  // Sent instead of a handle made from the above.
  const aclTensor* raw_handle = nullptr;

  int64_t NumElements() const;
  size_t ElementBytes() const { return aclDataTypeSize(dtype); }
  std::vector<int64_t> ContiguousStrides() const;
  // Sets both shapes; the strides become those of a tensor without gaps.
  void Reshape(std::vector<int64_t> new_dims);
};

// Handles for one call; destroyed with the object.
class Handles {
 public:
  Handles() = default;
  ~Handles() { Destroy(); }
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;
  void Destroy();

  std::array<const aclTensor*, kNumParams> tensors{};
  std::array<aclTensor*, kNumParams> owned{};
};

// V3's attributes.
struct Modes {
  int64_t weight_quant = 0;
  int64_t kv_cache_quant = 0;
  int64_t query_quant = 0;
  int64_t ckvkr_repo = 0;
  int64_t quant_scale_repo = 0;
  int64_t tile_size = 128;
  double qc_qr_scale = 1.0;
  double kc_scale = 1.0;
};

struct Phase1Result {
  aclnnStatus status = -2;
  uint64_t workspace_bytes = 0;
  aclOpExecutor* executor = nullptr;
  std::string text;
};

struct RunResult {
  aclnnStatus phase1 = -2;
  aclnnStatus phase2 = -2;
  aclError sync = -2;
  uint64_t workspace_bytes = 0;
  std::string text;  // of the step that failed

  bool Ok() const { return phase1 == 0 && phase2 == 0 && sync == 0; }
};
std::ostream& operator<<(std::ostream& out, const RunResult& result);

class PrologCall {
 public:
  // Describes a legal call whose data must not be touched: every address is an UntouchableAddress.
  explicit PrologCall(const Config& config);

  TensorDesc& operator[](Param param) { return descs_[param]; }
  const TensorDesc& operator[](Param param) const { return descs_[param]; }

  Config config;
  double epsilon_cq = 1e-5;
  double epsilon_ckv = 1e-5;
  std::optional<std::string> cache_mode;  // nothing: a null pointer
  Modes modes;

  // Gives every tensor a guarded buffer of the size its description has now and fills it: inputs with numbers that
  // depend on `seed` and, for what belongs to tokens, on the token's place in the call; indices with distinct slots;
  // everything that is written with sentinel bytes.
  void Allocate(uint64_t seed = 1);
  void FillInput(Param param, uint64_t seed, int64_t first_element = 0);
  // Only the sentinels.
  void ResetWritten();
  GuardedBuffer& buffer(Param param) { return buffers_[param]; }
  int64_t* slots() { return buffers_[kCacheIndex].as<int64_t>(); }
  // The row of token `t` as cacheIndex and actualSeqLen say now; negative: none.
  int64_t SlotOf(int64_t t) const;

  // Moves the tensor into a new buffer under the given strides and offset, with the same elements; all other bytes of
  // the buffer are `hole` bytes.
  void Restride(Param param, std::vector<int64_t> strides, int64_t offset, uint8_t hole);
  // The tensor's elements in row-major order, read through its strides and offset.
  std::vector<uint8_t> Elements(Param param) const;
  // The bytes of its buffer that belong to no element.
  std::vector<uint8_t> Holes(Param param) const;

  // Descriptions as a PyTorch adapter sends them: explicit strides, storage of one dimension, formats by rank,
  // FRACTAL_NZ weights as 2-D views of 4-D storage.
  void UseTorchStyle();

  void Create(Handles* handles) const;
  // The first step. The memory of the cache mode's text is overwritten afterwards.
  Phase1Result Phase1() const;
  Phase1Result Phase1(const Handles& handles) const;
  aclnnStatus Phase1(const Handles& handles, uint64_t* workspace_bytes, aclOpExecutor** executor) const;
  aclnnStatus Phase2(void* workspace, uint64_t workspace_bytes, aclOpExecutor* executor, aclrtStream stream) const;

  // Both steps and the synchronisation. While the first step runs, no buffer is accessible; while the second one runs,
  // inputs are read-only. The workspace ends at an inaccessible page. Handles are destroyed after the first step.
  RunResult Run(aclrtStream stream);
  // The same without changing the protection of pages, which is slow and disturbs other threads.
  RunResult RunQuick(aclrtStream stream) const;

  void ProtectAll(Access access);
  void ProtectInputs(Access access);
  // Fails the test if a canary in front of a buffer has changed.
  void ExpectGuardsIntact() const;

  // The bytes of everything a call writes.
  std::vector<std::vector<uint8_t>> Written() const;

 private:
  std::array<TensorDesc, kNumParams> descs_;
  std::array<GuardedBuffer, kNumParams> buffers_;
};

// The second step of a version.
aclnnStatus Phase2Of(Version version, void* workspace, uint64_t workspace_bytes, aclOpExecutor* executor,
                     aclrtStream stream);

// Ends an executor that will not be used.
void Discard(aclOpExecutor* executor);

// The calling thread's texts; forgets them.
std::string TakeTexts();

// The parameter whose name comes first in `text`: the one a refusal is about. "cacheMode", "executor" and
// "workspaceSize" count too. Empty if there is none.
std::string FirstNamed(const std::string& text);

// Expects that the first step refuses the call with `status` and a text that names one of `culprits` before any other
// parameter and says what was expected and what was found.
void ExpectRefused(const PrologCall& call, aclnnStatus status, const std::vector<std::string>& culprits);
void ExpectRefused(const PrologCall& call, const std::vector<aclnnStatus>& statuses,
                   const std::vector<std::string>& culprits);
void ExpectAccepted(const PrologCall& call);

// Expects the same bytes; reports the first difference instead of both contents.
void ExpectSameBytes(const std::vector<uint8_t>& expected, const std::vector<uint8_t>& actual, const std::string& what);

// The slot of token `t` in the calls of PrologCall: distinct for the first `capacity` tokens, in no order.
int64_t DefaultSlot(int64_t t, int64_t capacity);

// Sets MLAP_SOC and restores it at the end of the scope.
class ScopedSoc {
 public:
  explicit ScopedSoc(const char* value);
  ~ScopedSoc();
  ScopedSoc(const ScopedSoc&) = delete;
  ScopedSoc& operator=(const ScopedSoc&) = delete;

 private:
  std::optional<std::string> saved_;
};

// A context and a stream for each test.
class PrologTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  aclrtStream stream_ = nullptr;
};

}  // namespace mlap::prolog_test

#endif  // MLAP_TESTS_MLA_PROLOG_PROLOG_FIXTURE_H_
