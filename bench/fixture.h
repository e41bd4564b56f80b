// The tensors all contenders of one head count work on.
#ifndef MLAP_BENCH_FIXTURE_H_
#define MLAP_BENCH_FIXTURE_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cann_session.h"
#include "prolog_case.h"
#include "work_model.h"

namespace mlap::bench {

inline constexpr int64_t kBlockSize = 128;

struct FixtureRecipe {
  int64_t heads = 128;
  int64_t max_tokens = 1;  // fewer tokens use the first rows
  int num_copies = 2;      // of the weights
  std::vector<const tools::Scenario*> scenarios = {kNonQuant};
};

// All in device memory of the operator's runtime. Scenarios share what is equal in them: W_UK always.
class Fixture {
 public:
  explicit Fixture(const FixtureRecipe& recipe);

  int64_t heads() const { return recipe_.heads; }
  int64_t block_num() const { return block_num_; }
  int num_copies() const { return recipe_.num_copies; }

  // The memory of an input of `shape`, which has one of the recipe's scenarios; of a weight the given copy.
  void* Data(const tools::CaseShape& shape, std::string_view name, int copy) const;

  // The copy to use now: the one whose last use is the longest ago, whoever used it.
  int NextCopy() { return next_copy_ = (next_copy_ + 1) % recipe_.num_copies; }

  // The bf16 case on the host, for max_tokens tokens.
  const tools::PrologCase& host() const { return host_; }
  double epsilon() const { return host_.epsilon_cq; }

 private:
  using Buffers = std::map<std::string, tools::DeviceBuffer, std::less<>>;

  void AddCase(const tools::PrologCase& prolog_case);
  bool HasAll(const tools::CaseShape& shape) const;

  FixtureRecipe recipe_;
  int64_t block_num_;
  tools::PrologCase host_;
  Buffers inputs_;
  std::vector<Buffers> weights_;  // one per copy
  int next_copy_ = 0;
};

}  // namespace mlap::bench

#endif  // MLAP_BENCH_FIXTURE_H_
