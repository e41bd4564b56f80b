// The ISAs a test can run with on this machine.
#ifndef MLAP_TESTS_SUPPORT_USABLE_ISAS_H_
#define MLAP_TESTS_SUPPORT_USABLE_ISAS_H_

#include <ostream>
#include <string>
#include <vector>

#include "cpu/dispatch.h"

namespace mlap {

// How GoogleTest shows a choice: by its name.
inline void PrintTo(const KernelChoice& choice, std::ostream* out) { *out << choice.isa; }

}  // namespace mlap

namespace mlap::test {

// One choice of kernels per usable ISA, ascending: the scalar one first. ISAs that are missing are named on the
// standard error; one that the environment's MLAP_REQUIRE_ISA names is a test failure.
std::vector<KernelChoice> UsableIsas();

// Names for the instances of a parameterised test.
std::string IsaName(const KernelChoice& choice);

}  // namespace mlap::test

#endif  // MLAP_TESTS_SUPPORT_USABLE_ISAS_H_
