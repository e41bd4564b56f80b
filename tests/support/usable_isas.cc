#include "support/usable_isas.h"

#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>

#include "cpu/isa.h"
#include "gtest/gtest.h"

namespace mlap::test {
namespace {

bool IsRequired(const char* isa) {
  const char* required = std::getenv("MLAP_REQUIRE_ISA");
  std::stringstream names(required != nullptr ? required : "");
  for (std::string name; std::getline(names, name, ',');) {
    if (name == isa) return true;
  }
  return false;
}

}  // namespace

std::vector<KernelChoice> UsableIsas() {
  const CpuFeatures features = FeaturesFrom(ReadCpuid());
  std::vector<KernelChoice> choices;
  for (const Isa& isa : Isas()) {
    const std::string reason = WhyUnusable(isa, features);
    if (!reason.empty()) {
      std::cerr << "NOT TESTED HERE: ISA " << isa.name << ": " << reason << std::endl;
      if (IsRequired(isa.name)) ADD_FAILURE() << "MLAP_REQUIRE_ISA asks for " << isa.name << ": " << reason;
      continue;
    }
    KernelChoice choice;
    if (ChooseKernels(isa.name, &choice).ok()) choices.push_back(choice);
  }
  return choices;
}

std::string IsaName(const KernelChoice& choice) { return choice.isa; }

}  // namespace mlap::test
