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

  // Outputs with the file's initial caches. query_norm and its scale are empty where the case has none.
  struct Outputs {
    std::vector<uint8_t> query, query_rope, kv_cache, kr_cache, query_norm, mx_scale_q_norm;
    std::vector<float> dequant_scale_q_nope, dequant_scale_q_norm;
  };
  Outputs FreshOutputs() const;
  PrologArgs Args(Outputs* out) const;

  // The bytes of tensor `name`; empty if the file has none.
  std::vector<uint8_t> Bytes(const std::string& name) const;
  // The same as numbers.
  std::vector<float> Numbers(const std::string& name) const;

 private:
  std::string Metadata(const std::string& key) const;
  int64_t Size(const std::string& key) const { return std::stoll(Metadata(key)); }
  template <class T>
  const T* Pointer(const std::string& name) const;
  WeightView Weight(const std::string& name, int64_t k, int64_t n) const;
  TokenSlots Slots(int64_t tokens) const;
  CacheView Cache(const std::string& name, std::vector<uint8_t>* memory) const;

  tools::LoadedFile file_;
};

// The bytes of elements of bf16, an 8-bit type or binary32 as numbers.
std::vector<float> ToNumbers(const std::vector<uint8_t>& bytes, ElementType type);

// All case files, sorted by name.
std::vector<std::string> GoldenCaseNames();
std::string GoldenCasePath(const std::string& name);

}  // namespace mlap::test

#endif  // MLAP_TESTS_ENGINE_GOLDEN_CASE_H_
