#include "case_slots.h"

#include <cstring>

namespace mlap::tools {
namespace {

template <typename T>
std::vector<T> Values(const PrologCase& prolog_case, std::string_view name) {
  const CaseTensor* tensor = prolog_case.FindInput(name);
  if (tensor == nullptr || tensor->view.num_bytes == 0) return {};
  std::vector<T> values(tensor->view.num_bytes / sizeof(T));
  std::memcpy(values.data(), tensor->view.bytes, values.size() * sizeof(T));
  return values;
}

// The tokens up to and with each sequence.
std::vector<int64_t> SequenceEnds(const PrologCase& prolog_case) {
  const CaseShape& shape = prolog_case.shape;
  std::vector<int64_t> ends;
  if (shape.HasSequenceEnds()) {
    for (const int32_t end : Values<int32_t>(prolog_case, "actual_seq_len")) ends.push_back(end);
  } else {
    for (int64_t b = 0; b < shape.lead[0]; ++b) ends.push_back((b + 1) * shape.lead[1]);
  }
  return ends;
}

std::vector<int64_t> SlotsInBlocks(const PrologCase& prolog_case) {
  const CaseShape& shape = prolog_case.shape;
  const std::vector<int64_t> pages = Values<int64_t>(prolog_case, "cache_index");
  std::vector<int64_t> slots(static_cast<size_t>(shape.Tokens()), kNoSlot);
  int64_t begin = 0;
  int64_t first_entry = 0;
  for (const int64_t end : SequenceEnds(prolog_case)) {
    for (int64_t t = begin; t < end && t < shape.Tokens(); ++t) {
      const auto entry = static_cast<size_t>(first_entry + (t - begin) / shape.block_size);
      if (entry >= pages.size() || pages[entry] < 0 || pages[entry] >= shape.block_num) continue;
      slots[static_cast<size_t>(t)] = pages[entry] * shape.block_size + (t - begin) % shape.block_size;
    }
    if (end < begin) break;
    first_entry += CeilDiv(end - begin, shape.block_size);
    begin = end;
  }
  return slots;
}

}  // namespace

std::vector<int64_t> SlotsOfTokens(const PrologCase& prolog_case) {
  const CaseShape& shape = prolog_case.shape;
  if (shape.HasBlocks()) return SlotsInBlocks(prolog_case);
  std::vector<int64_t> slots = Values<int64_t>(prolog_case, "cache_index");
  slots.resize(static_cast<size_t>(shape.Tokens()), kNoSlot);
  for (size_t t = 0; t < slots.size(); ++t) {
    if (!shape.IsPaged()) slots[t] = static_cast<int64_t>(t);
    if (slots[t] < 0 || slots[t] >= shape.Capacity()) slots[t] = kNoSlot;
  }
  return slots;
}

}  // namespace mlap::tools
