// A golden case: inputs and expected outputs from the independent model of tests/golden.
#ifndef MLAP_TESTS_ENGINE_GOLDEN_CASE_H_
#define MLAP_TESTS_ENGINE_GOLDEN_CASE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/prolog_args.h"
#include "safetensors_file.h"

namespace mlap::test {

class GoldenCase {
 public:
  explicit GoldenCase(const std::string& path) : file_(tools::LoadedFile::Open(path)) {}

  std::string Scenario() const { return Metadata("scenario"); }
  // Outputs with the file's initial caches.
  struct Outputs {
    std::vector<uint8_t> query, query_rope, kv_cache, kr_cache;
    std::vector<float> dequant_scale_q_nope;
  };
  Outputs FreshOutputs() const;
  PrologArgs Args(Outputs* out) const;

  // The bytes of tensor `name`; empty if the file has none.
  std::vector<uint8_t> Bytes(const std::string& name) const;
  // The same as numbers, for BF16, F32 and I8.
  std::vector<float> Numbers(const std::string& name) const;

 private:
  std::string Metadata(const std::string& key) const;
  int64_t Size(const std::string& key) const { return std::stoll(Metadata(key)); }
  template <class T>
  const T* Pointer(const std::string& name) const;
  WeightView Weight(const std::string& name, int64_t k, int64_t n) const;

  tools::LoadedFile file_;
};

// All case files, sorted by name.
std::vector<std::string> GoldenCaseNames();
std::string GoldenCasePath(const std::string& name);

}  // namespace mlap::test

#endif  // MLAP_TESTS_ENGINE_GOLDEN_CASE_H_
