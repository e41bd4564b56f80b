// Where the tokens of a case go in its caches.
#ifndef MLAP_TOOLS_CASE_SLOTS_H_
#define MLAP_TOOLS_CASE_SLOTS_H_

#include <cstdint>
#include <vector>

#include "prolog_case.h"

namespace mlap::tools {

inline constexpr int64_t kNoSlot = -1;

// The slot of each token, or kNoSlot; a slot is page * BlockSize + row. Lists that do not fit give no slots.
std::vector<int64_t> SlotsOfTokens(const PrologCase& prolog_case);

}  // namespace mlap::tools

#endif  // MLAP_TOOLS_CASE_SLOTS_H_
