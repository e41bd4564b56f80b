// aclnnMlaProlog through its two steps.
#ifndef MLAP_BENCH_OUR_OPERATOR_H_
#define MLAP_BENCH_OUR_OPERATOR_H_

#include <aclnn/acl_meta.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cann_session.h"
#include "contender.h"
#include "fixture.h"
#include "work_model.h"

namespace mlap::bench {

// The first step's arguments for one copy of the weights.
class OurCall {
 public:
  OurCall(const Fixture& fixture, const tools::CaseShape& shape, int copy, void* query, void* query_rope);

  // The first step. The executor is one-shot. Throws ToolError if it refuses.
  aclOpExecutor* MakeExecutor(uint64_t* workspace_bytes) const;

 private:
  aclTensor* Get(std::string_view name) const;

  double epsilon_;
  std::map<std::string, tools::AclTensor, std::less<>> tensors_;
};

class OurOperator : public Contender {
 public:
  // The fixture must outlive the object.
  OurOperator(tools::CannSession* session, Fixture* fixture, const Point& point);
  ~OurOperator() override;

  // The second step until the stream has done the work, with a repeatable executor.
  double RunOnce() override;
  void EndTurn() override;

  const uint16_t* query() const { return static_cast<const uint16_t*>(query_.data()); }
  const uint16_t* query_rope() const { return static_cast<const uint16_t*>(query_rope_.data()); }

 private:
  tools::CannSession* session_;
  Fixture* fixture_;
  tools::DeviceBuffer query_;
  tools::DeviceBuffer query_rope_;
  std::vector<OurCall> calls_;
  std::vector<aclOpExecutor*> executors_;  // one per copy of the weights
  uint64_t workspace_bytes_ = 0;
  std::unique_ptr<tools::DeviceBuffer> workspace_;
};

// The bytes of the two outputs.
size_t QueryBytes(const tools::CaseShape& shape);
size_t QueryRopeBytes(const tools::CaseShape& shape);

}  // namespace mlap::bench

#endif  // MLAP_BENCH_OUR_OPERATOR_H_
