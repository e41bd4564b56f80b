// The operator through its two steps.
#ifndef MLAP_BENCH_OUR_OPERATOR_H_
#define MLAP_BENCH_OUR_OPERATOR_H_

#include <aclnn/acl_meta.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cann_session.h"
#include "contender.h"
#include "fixture.h"
#include "prolog_call.h"
#include "work_model.h"

namespace mlap::bench {

// The version that a scenario is measured through: V1 where it has the scenario, else V3.
const tools::PrologVersion& MeasuredVersion(const tools::Scenario& scenario);

// Memory for the outputs of a call.
class OutputBuffers {
 public:
  // Touched, so that no call waits for pages.
  explicit OutputBuffers(const tools::CaseShape& shape);

  void* Data(std::string_view name) const { return buffers_.find(name)->second.data(); }

 private:
  std::map<std::string, tools::DeviceBuffer, std::less<>> buffers_;
};

// The first step's arguments. `data` gives the memory of an input or output.
class OurCall {
 public:
  OurCall(const tools::CaseShape& shape, double epsilon, const std::function<void*(std::string_view)>& data);

  // The first step. The executor is one-shot. Throws ToolError if it refuses.
  aclOpExecutor* MakeExecutor(uint64_t* workspace_bytes) const;

 private:
  tools::CaseShape shape_;
  tools::PrologAttributes attributes_;
  std::map<std::string, tools::AclTensor, std::less<>> tensors_;
};

// One on the given copy of the weights.
OurCall CallOn(const Fixture& fixture, const tools::CaseShape& shape, int copy, const OutputBuffers& outputs);

class OurOperator : public Contender {
 public:
  // The fixture must outlive the object.
  OurOperator(tools::CannSession* session, Fixture* fixture, const Point& point);
  ~OurOperator() override;

  // The second step until the stream has done the work, with a repeatable executor.
  double RunOnce() override;
  int RunsPerPass() const override { return fixture_->num_copies(); }
  void EndTurn() override;

  const uint16_t* query() const { return static_cast<const uint16_t*>(outputs_.Data("query")); }
  const uint16_t* query_rope() const { return static_cast<const uint16_t*>(outputs_.Data("query_rope")); }

 private:
  tools::CannSession* session_;
  Fixture* fixture_;
  const tools::PrologVersion& version_;
  OutputBuffers outputs_;
  std::vector<OurCall> calls_;
  std::vector<aclOpExecutor*> executors_;  // one per copy of the weights
  uint64_t workspace_bytes_ = 0;
  std::unique_ptr<tools::DeviceBuffer> workspace_;
};

}  // namespace mlap::bench

#endif  // MLAP_BENCH_OUR_OPERATOR_H_
