// The operator's three versions behind one call, which takes tensors by their names.
#ifndef MLAP_TOOLS_PROLOG_CALL_H_
#define MLAP_TOOLS_PROLOG_CALL_H_

#include <aclnn/acl_meta.h>
#include <aclnn/aclnn_base.h>

#include <functional>
#include <string_view>

#include "cann_session.h"
#include "case_shape.h"

namespace mlap::tools {

struct PrologVersion {
  int number;                   // 1, 2, 3
  const char* first_step_name;  // "aclnnMlaPrologGetWorkspaceSize"
  const char* second_step_name;
};

const PrologVersion& VersionOf(int number);

// The arguments that are no tensors.
struct PrologAttributes {
  double epsilon_cq = 1e-5;
  double epsilon_ckv = 1e-5;
  double qc_qr_scale = 1.0;
  double kc_scale = 1.0;
};

// The first version that has what the call needs. `has_v1`: whether the device has the first two at all.
const PrologVersion& FirstVersionFor(const CaseShape& shape, const PrologAttributes& attributes, bool has_v1);

// What of a call the version's arguments cannot say: "query_norm"; empty if they can say all.
std::string_view MissingIn(const PrologVersion& version, const CaseShape& shape, const PrologAttributes& attributes);

// The description of a tensor of `shape`, with the shape the version wants. Weights are FRACTAL_NZ images.
AclTensor DescribeTensor(const TensorSpec& spec, void* data);

// Null if the call has no tensor of the name.
using TensorByName = std::function<aclTensor*(std::string_view)>;

aclnnStatus FirstStep(const PrologVersion& version, const CaseShape& shape, const PrologAttributes& attributes,
                      const TensorByName& get, uint64_t* workspace_bytes, aclOpExecutor** executor);

aclnnStatus SecondStep(const PrologVersion& version, void* workspace, uint64_t workspace_bytes, aclOpExecutor* executor,
                       aclrtStream stream);

}  // namespace mlap::tools

#endif  // MLAP_TOOLS_PROLOG_CALL_H_
