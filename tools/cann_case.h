// A case on the device, and the two-step call of the operator on it.
#ifndef MLAP_TOOLS_CANN_CASE_H_
#define MLAP_TOOLS_CANN_CASE_H_

#include <mlaprolog/cann_report.h>

#include <map>
#include <string>
#include <vector>

#include "cann_session.h"
#include "prolog_call.h"
#include "prolog_case.h"

namespace mlap::tools {

struct CallTimes {
  double first_step = 0.0;   // in seconds
  double second_step = 0.0;  // until the stream has done the work
};

class CannCase {
 public:
  // Copies the inputs to the device; plain weights are packed to FRACTAL_NZ. `version` 0: the first that the case can
  // be told to. The first two arguments must outlive the object. Throws ToolError.
  CannCase(CannSession* session, const PrologCase& prolog_case, int version = 0);

  // Calls the operator once and waits. The caches keep what earlier runs wrote. Throws ToolError with the operator's
  // status and text if it refuses or fails.
  CallTimes Run();
  bool HasRun() const { return has_run_; }

  // Of the last run. There is no report of a call without tokens, which does nothing: `op` is null then.
  CaseOutputs Outputs() const;
  mlap_cann_report Report() const;

 private:
  struct DeviceTensor {
    CaseTensor host;  // type and shape; of an input also the bytes
    DeviceBuffer buffer;
    AclTensor tensor;
  };

  void Add(const TensorSpec& spec, const CaseTensor& host, bool is_input);
  aclTensor* Get(std::string_view name) const;

  CannSession* session_;
  const PrologCase& case_;
  const PrologVersion& version_;
  bool has_run_ = false;
  std::map<std::string, DeviceTensor, std::less<>> tensors_;
};

PrologAttributes AttributesOf(const PrologCase& prolog_case);

// The first version that has what the case needs and that the device named by MLAP_SOC has.
const PrologVersion& FirstVersionFor(const CaseShape& shape, const PrologAttributes& attributes);

// Whether the operator's first step accepts the shape for the device named by MLAP_SOC; its text if it does not. No
// memory of the tensors' size is used.
bool IsShapeAccepted(const CaseShape& shape, const PrologVersion& version, std::string* why_not);

}  // namespace mlap::tools

#endif  // MLAP_TOOLS_CANN_CASE_H_
