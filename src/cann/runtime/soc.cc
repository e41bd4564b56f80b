#include "cann/runtime/soc.h"

#include <cstdlib>
#include <string_view>

namespace mlap::cann {

bool ChosenSoc(Soc* out, std::string* error) {
  const char* const variable = std::getenv("MLAP_SOC");
  const std::string_view name = variable == nullptr ? "" : variable;
  if (name.empty() || name == "ascend910b") {
    *out = Soc::kAscend910B;
  } else if (name == "ascend910_93") {
    *out = Soc::kAscend910_93;
  } else if (name == "ascend950") {
    *out = Soc::kAscend950;
  } else if (name == "none") {
    *out = Soc::kNone;
  } else {
    *error = "MLAP_SOC: expected ascend910b (the default), ascend910_93, ascend950 or none, found '";
    error->append(name).append("'; set it to one of them or unset it");
    return false;
  }
  return true;
}

const char* SocName(Soc soc) {
  switch (soc) {
    case Soc::kAscend910B:
      return "Ascend910B3";
    case Soc::kAscend910_93:
      return "Ascend910_9391";
    case Soc::kAscend950:
      return "Ascend950PR_9599";
    case Soc::kNone:
      break;
  }
  return "mlaprolog-cpu";
}

}  // namespace mlap::cann
