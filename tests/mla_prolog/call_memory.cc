// The memory of a PrologCall: what its tensors hold, and how they lie in it.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "prolog_fixture.h"

namespace mlap::prolog_test {
namespace {

constexpr uint8_t kSentinel = 0xA5;

// The finaliser of splitmix64: a number for every (seed, index), so that a token's data do not depend on the call.
uint64_t Hash(uint64_t value) {
  value += 0x9E3779B97F4A7C15u;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
}

// In [-1, 1).
float Uniform(uint64_t seed, uint64_t index) {
  return static_cast<float>(static_cast<int64_t>(Hash(seed ^ Hash(index)) >> 40)) * 0x1p-23f - 1.0f;
}

uint16_t ToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

int64_t C0(aclDataType dtype) { return 32 / static_cast<int64_t>(aclDataTypeSize(dtype)); }

int64_t RoundUp(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

// Visits the offset of every element in row-major order.
template <class F>
void ForEachOffset(const TensorDesc& desc, F&& visit) {
  const std::vector<int64_t> strides = desc.strides ? *desc.strides : desc.ContiguousStrides();
  const int64_t count = desc.NumElements();
  std::vector<int64_t> index(desc.dims.size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    int64_t offset = desc.offset;
    for (size_t d = 0; d < index.size(); ++d) offset += index[d] * strides[d];
    visit(offset);
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < desc.dims[d]) break;
      index[d] = 0;
    }
  }
}

struct Range {
  float centre;
  float radius;
};

// Magnitudes like those of a trained model: normalised activations, products of order one, int8 caches that use their
// range and saturate now and then.
Range RangeOf(Param param, const Config& config) {
  const auto root = [](int64_t k) { return 1.7f / std::sqrt(static_cast<float>(k)); };
  switch (param) {
    case kWeightDq:
    case kWeightDkvKr:
      return {0, root(config.hidden)};
    case kWeightUqQr:
      return {0, root(config.q_rank)};
    case kWeightUk:
      return {0, root(config.nope)};
    case kGammaCq:
    case kGammaCkv:
    case kSmooth:
      return {1, 0.5f};
    // Of 8-bit numbers of up to 127.
    case kScaleX:
      return {1.7f / 127, 1.0f / 127};
    case kScaleWDq:
    case kScaleWDkvKr:
      return {root(config.hidden) / 127, root(config.hidden) / 254};
    case kScaleWUqQr:
      return {root(config.q_rank) / 127, root(config.q_rank) / 254};
    case kScaleCkv:
    case kScaleCkr:
      return {50, 25};
    case kClipAlpha:
      return {0.9f, 0.05f};
    case kTokenX:
      return {0, 1.7f};
    default:
      return {0, 1};
  }
}

}  // namespace

int64_t DefaultSlot(int64_t t, int64_t capacity) {
  if (capacity == 0) return t;
  int64_t step = 7;
  while (std::gcd(step, capacity) != 1) step += 2;
  return (t * step + 3) % capacity;
}

void PrologCall::Allocate(uint64_t seed) {
  for (int i = 0; i < kNumParams; ++i) {
    const Param param = static_cast<Param>(i);
    TensorDesc& desc = descs_[param];
    if (desc.null) continue;
    int64_t elements = desc.NumElements();
    if (IsNzWeight(param) && desc.dims.size() == 2) {
      elements = RoundUp(desc.dims[0], 16) * RoundUp(desc.dims[1], C0(desc.dtype));
    }
    buffers_[param] = GuardedBuffer(static_cast<size_t>(desc.offset + elements) * desc.ElementBytes());
    desc.data = buffers_[param].data();
    if (!IsWritten(param)) FillInput(param, seed);
  }
  ResetWritten();
}

void PrologCall::FillInput(Param param, uint64_t seed, int64_t first_element) {
  const TensorDesc& desc = descs_[param];
  const size_t count = buffers_[param].size() / desc.ElementBytes();
  const Range range = RangeOf(param, config);
  const uint64_t stream = Hash(seed * kNumParams + param);
  const uint64_t first = static_cast<uint64_t>(first_element);
  switch (desc.dtype) {
    case ACL_BF16:
      for (size_t i = 0; i < count; ++i) {
        buffers_[param].as<uint16_t>()[i] = ToBf16(range.centre + range.radius * Uniform(stream, first + i));
      }
      break;
    case ACL_FLOAT:
      for (size_t i = 0; i < count; ++i) {
        buffers_[param].as<float>()[i] = range.centre + range.radius * Uniform(stream, first + i);
      }
      break;
    case ACL_INT8:
      for (size_t i = 0; i < count; ++i) {
        buffers_[param].as<int8_t>()[i] = static_cast<int8_t>(std::lrint(127 * Uniform(stream, first + i)));
      }
      break;
    // Codes of moderate numbers in both types, without the NaN that 0x80 is in HiFloat8.
    case ACL_FLOAT8_E4M3FN:
    case ACL_HIFLOAT8:
      for (size_t i = 0; i < count; ++i) {
        const auto code = static_cast<uint8_t>(Hash(stream ^ Hash(first + i)) & 0xFF);
        const auto moderate = static_cast<uint8_t>((code & 0x87) | ((code & 0x78) % 0x68));
        buffers_[param].data()[i] = moderate == 0x80 ? 0 : moderate;
      }
      break;
    // Powers of two around a thousandth.
    case ACL_FLOAT8_E8M0:
      for (size_t i = 0; i < count; ++i) {
        buffers_[param].data()[i] = static_cast<uint8_t>(115 + Hash(stream ^ Hash(first + i)) % 4);
      }
      break;
    // Ends of the sequences.
    case ACL_INT32: {
      int32_t end = 0;
      size_t i = 0;
      for (const int64_t length : config.Sequences()) {
        end += static_cast<int32_t>(length);
        if (i < count) buffers_[param].as<int32_t>()[i++] = end;
      }
      break;
    }
    // Rows, or pages.
    case ACL_INT64:
      for (size_t i = 0; i < count; ++i) {
        buffers_[param].as<int64_t>()[i] = DefaultSlot(first_element + static_cast<int64_t>(i),
                                                       config.IsBlocks() ? config.block_num : config.Capacity());
      }
      break;
    default:
      buffers_[param].Fill(0x11);
  }
}

void PrologCall::ResetWritten() {
  for (const Param param : kWritten) buffers_[param].Fill(kSentinel);
}

void PrologCall::Restride(Param param, std::vector<int64_t> strides, int64_t offset, uint8_t hole) {
  TensorDesc& desc = descs_[param];
  const std::vector<uint8_t> elements = Elements(param);
  const size_t bytes = desc.ElementBytes();
  desc.strides = std::move(strides);
  desc.offset = offset;
  int64_t end = offset;
  ForEachOffset(desc, [&end](int64_t at) { end = std::max(end, at + 1); });
  buffers_[param] = GuardedBuffer(static_cast<size_t>(end) * bytes);
  buffers_[param].Fill(hole);
  desc.data = buffers_[param].data();
  desc.storage_dims = {end};
  size_t next = 0;
  ForEachOffset(desc, [&](int64_t at) {
    std::memcpy(buffers_[param].data() + static_cast<size_t>(at) * bytes, elements.data() + next, bytes);
    next += bytes;
  });
}

std::vector<uint8_t> PrologCall::Elements(Param param) const {
  const TensorDesc& desc = descs_[param];
  if (desc.null) return {};
  const size_t bytes = desc.ElementBytes();
  std::vector<uint8_t> result(static_cast<size_t>(desc.NumElements()) * bytes);
  size_t next = 0;
  ForEachOffset(desc, [&](int64_t at) {
    std::memcpy(result.data() + next, buffers_[param].data() + static_cast<size_t>(at) * bytes, bytes);
    next += bytes;
  });
  return result;
}

std::vector<uint8_t> PrologCall::Holes(Param param) const {
  const TensorDesc& desc = descs_[param];
  if (desc.null) return {};
  const size_t bytes = desc.ElementBytes();
  std::vector<bool> is_element(buffers_[param].size() / bytes, false);
  ForEachOffset(desc, [&](int64_t at) { is_element[static_cast<size_t>(at)] = true; });
  std::vector<uint8_t> result;
  for (size_t i = 0; i < is_element.size(); ++i) {
    if (is_element[i]) continue;
    result.insert(result.end(), buffers_[param].data() + i * bytes, buffers_[param].data() + (i + 1) * bytes);
  }
  return result;
}

}  // namespace mlap::prolog_test
