// The device whose limits the operators apply.
#ifndef MLAP_CANN_RUNTIME_SOC_H_
#define MLAP_CANN_RUNTIME_SOC_H_

#include <string>

namespace mlap::cann {

enum class Soc { kAscend910B, kAscend910_93, kAscend950, kNone };

// Reads MLAP_SOC, on each call: ascend910b (also when unset or empty), ascend910_93, ascend950 or none. Returns false
// for any other value and says in `*error` what is legal.
bool ChosenSoc(Soc* out, std::string* error);

// The name aclrtGetSocName reports.
const char* SocName(Soc soc);

}  // namespace mlap::cann

#endif  // MLAP_CANN_RUNTIME_SOC_H_
