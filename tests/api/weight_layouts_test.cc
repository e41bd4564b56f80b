// One set of weights in every layout, copied or borrowed, and calls with every kind of strides: the same bits always.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "api/native_call.h"

namespace mlap::test {
namespace {

class WeightLayouts : public testing::TestWithParam<CallOptions> {
 protected:
  static mlap_context* Context() {
    static mlap_context* const kContext = [] {
      mlap_context* context = nullptr;
      EXPECT_EQ(mlap_context_create(nullptr, &context), MLAP_OK) << mlap_last_error();
      return context;
    }();
    return kContext;
  }

  // The results of the operator and the reference on a call with changed tensors.
  template <class Change>
  void ExpectSameResults(const std::string& what, const Change& change) {
    SCOPED_TRACE(what);
    NativeCall plain(GetParam());
    NativeCall changed(GetParam());
    change(&changed);
    ASSERT_EQ(plain.Run(Context()), MLAP_OK) << mlap_last_error();
    ASSERT_EQ(changed.Run(Context()), MLAP_OK) << mlap_last_error();
    EXPECT_EQ(changed.WritableBytes(), plain.WritableBytes());
    ASSERT_EQ(plain.RunReference(), MLAP_OK) << mlap_last_error();
    ASSERT_EQ(changed.RunReference(), MLAP_OK) << mlap_last_error();
    EXPECT_EQ(changed.WritableBytes(), plain.WritableBytes());
  }
};
INSTANTIATE_TEST_SUITE_P(Calls, WeightLayouts, testing::ValuesIn(AllCalls()), CallName);

constexpr const char* kMatrices[] = {"weight_dq", "weight_uq_qr", "weight_dkv_kr"};

// Memory for tensors in another layout, while the call lives.
using Memory = std::vector<std::vector<char>>;

// Gives the tensor `bytes` bytes of its own, filled with 0xFF: NaN wherever a float is read by mistake.
char* NewMemory(Memory* memory, size_t bytes) {
  memory->emplace_back(bytes + 64, static_cast<char>(0xFF));
  char* data = memory->back().data();
  return data + (64 - reinterpret_cast<uintptr_t>(data) % 64) % 64;
}

// The matrix as (n, k), its rows `padding` elements further apart than needed.
void Transpose(mlap_tensor* tensor, int64_t padding, Memory* memory) {
  const size_t bytes = DtypeBytes(tensor->dtype);
  const int64_t k = tensor->dims[0], n = tensor->dims[1];
  char* to = NewMemory(memory, static_cast<size_t>((k + padding) * n) * bytes);
  for (int64_t i = 0; i < k; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      std::memcpy(to + static_cast<size_t>(j * (k + padding) + i) * bytes,
                  static_cast<char*>(tensor->data) + static_cast<size_t>(i * n + j) * bytes, bytes);
    }
  }
  *tensor = {to, tensor->dtype, MLAP_OUT_IN, 2, {n, k}, {}};
  if (padding != 0) {
    tensor->strides[0] = k + padding;
    tensor->strides[1] = 1;
  }
}

// The FRACTAL_NZ image, by the definition of its offsets, with NaN bytes in its padding.
void Fractalize(mlap_tensor* tensor, int rank, Memory* memory) {
  const size_t bytes = DtypeBytes(tensor->dtype);
  const int64_t k = tensor->dims[0], n = tensor->dims[1], c0 = 32 / static_cast<int64_t>(bytes);
  const int64_t padded_k = (k + 15) / 16 * 16, blocks = (n + c0 - 1) / c0;
  char* to = NewMemory(memory, static_cast<size_t>(padded_k * blocks * c0) * bytes);
  for (int64_t i = 0; i < k; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      std::memcpy(to + static_cast<size_t>(j / c0 * padded_k * c0 + i * c0 + j % c0) * bytes,
                  static_cast<char*>(tensor->data) + static_cast<size_t>(i * n + j) * bytes, bytes);
    }
  }
  if (rank == 4) {
    *tensor = {to, tensor->dtype, MLAP_FRACTAL_NZ, 4, {blocks, padded_k / 16, 16, c0}, {}};
  } else {
    *tensor = {to, tensor->dtype, MLAP_FRACTAL_NZ, 2, {k, n}, {}};
  }
}

void SetDims(NativeCall* call, const CallOptions& options) {
  call->weights_args.dims = {NativeCall::kHidden, options.has_low_rank ? NativeCall::kQRank : 0,
                             NativeCall::kHeads,  NativeCall::kNope,
                             NativeCall::kRope,   NativeCall::kKvRank};
}

template <class Change>
void ForMatrices(NativeCall* call, const Change& change) {
  for (const char* name : kMatrices) {
    if (call->Has(name)) change(call->Tensor(name));
  }
}

TEST_P(WeightLayouts, EveryLayoutCopiedOrBorrowed) {
  Memory memory;
  for (const mlap_ownership ownership : {MLAP_COPY, MLAP_BORROW}) {
    const std::string how = ownership == MLAP_COPY ? "copied" : "borrowed";
    ExpectSameResults("row-major " + how, [&](NativeCall* call) { call->weights_args.ownership = ownership; });
    for (const int rank : {2, 4}) {
      ExpectSameResults("NZ " + std::to_string(rank) + "-D " + how, [&](NativeCall* call) {
        call->weights_args.ownership = ownership;
        SetDims(call, GetParam());
        ForMatrices(call, [&](mlap_tensor* tensor) { Fractalize(tensor, rank, &memory); });
      });
    }
  }
  for (const int64_t padding : {0, 3}) {
    ExpectSameResults("(out, in)", [&](NativeCall* call) {
      ForMatrices(call, [&](mlap_tensor* tensor) { Transpose(tensor, padding, &memory); });
    });
  }
}

TEST_P(WeightLayouts, SizesOfFourDimensionalWeightsComeFromTheOthers) {
  Memory memory;
  // Only weight_uq_qr keeps two dimensions: Dr comes from it.
  ExpectSameResults("dims left to the tensors", [&](NativeCall* call) {
    Fractalize(&call->weights_args.weight_dkv_kr, 4, &memory);
    if (GetParam().has_low_rank) Fractalize(&call->weights_args.weight_dq, 4, &memory);
  });
}

TEST_P(WeightLayouts, CopiesOutliveTheirSource) {
  NativeCall plain(GetParam());
  NativeCall freed(GetParam());
  ASSERT_NE(freed.Weights(), nullptr) << mlap_last_error();
  for (const NamedTensor& tensor : freed.Given()) {
    if (!NativeCall::IsOfWeights(tensor.name)) continue;
    std::memset(tensor.tensor->data, 0xFF, freed.Values(tensor.name).size() * DtypeBytes(tensor.tensor->dtype));
  }
  ASSERT_EQ(plain.Run(Context()), MLAP_OK) << mlap_last_error();
  ASSERT_EQ(freed.Run(Context()), MLAP_OK) << mlap_last_error();
  EXPECT_EQ(freed.WritableBytes(), plain.WritableBytes());
}

TEST_P(WeightLayouts, BorrowedWeightsAreReadInPlace) {
  NativeCall before(GetParam());
  NativeCall changed(GetParam());
  changed.weights_args.ownership = MLAP_BORROW;
  ASSERT_NE(changed.Weights(), nullptr) << mlap_last_error();
  changed.Data<uint16_t>("weight_uk")[0] ^= 0x0180;  // another exponent
  ASSERT_EQ(before.Run(Context()), MLAP_OK) << mlap_last_error();
  ASSERT_EQ(changed.Run(Context()), MLAP_OK) << mlap_last_error();
  EXPECT_NE(changed.WritableBytes().at("query"), before.WritableBytes().at("query"));
  EXPECT_EQ(changed.WritableBytes().at("query_rope").size(), before.WritableBytes().at("query_rope").size());
}

TEST_P(WeightLayouts, WhatCannotBeBorrowedIsRefused) {
  Memory memory;
  for (const char* name : kMatrices) {
    NativeCall call(GetParam());
    if (!call.Has(name)) continue;
    call.weights_args.ownership = MLAP_BORROW;
    Transpose(call.Tensor(name), 0, &memory);
    SetDims(&call, GetParam());
    EXPECT_EQ(call.Weights(), nullptr);
    EXPECT_NE(std::string(mlap_last_error()).find(name), std::string::npos) << mlap_last_error();
    EXPECT_NE(std::string(mlap_last_error()).find("MLAP_COPY"), std::string::npos) << mlap_last_error();
  }
}

TEST_P(WeightLayouts, BorrowedRowsMayLieApart) {
  Memory memory;
  ExpectSameResults("a row stride", [&](NativeCall* call) {
    call->weights_args.ownership = MLAP_BORROW;
    ForMatrices(call, [&](mlap_tensor* tensor) {
      const size_t bytes = DtypeBytes(tensor->dtype);
      const int64_t k = tensor->dims[0], n = tensor->dims[1], stride = n + 32;
      char* to = NewMemory(&memory, static_cast<size_t>(k * stride) * bytes);
      for (int64_t i = 0; i < k; ++i) {
        std::memcpy(to + static_cast<size_t>(i * stride) * bytes,
                    static_cast<char*>(tensor->data) + static_cast<size_t>(i * n) * bytes,
                    static_cast<size_t>(n) * bytes);
      }
      tensor->data = to;
      tensor->strides[0] = stride;
      tensor->strides[1] = 1;
    });
  });
}

// Moves a tensor's elements apart: every dimension's stride is larger than it must be, the order of the dimensions is
// reversed, or the elements lie backwards.
enum class Spread { kGaps, kReversed, kBackwards };

void SpreadTensor(mlap_tensor* tensor, Spread spread, Memory* memory) {
  const size_t bytes = DtypeBytes(tensor->dtype);
  mlap_tensor old = *tensor;
  int64_t stride = spread == Spread::kGaps ? 3 : 1;
  for (int step = 0; step < tensor->rank; ++step) {
    const int i = spread == Spread::kReversed ? step : tensor->rank - 1 - step;
    tensor->strides[i] = spread == Spread::kBackwards ? -stride : stride;
    stride = stride * tensor->dims[i] + (spread == Spread::kGaps ? 5 : 0);
  }
  char* data = NewMemory(memory, static_cast<size_t>(stride + 8) * bytes);
  int64_t first = 0;
  for (int i = 0; i < tensor->rank; ++i) {
    if (tensor->strides[i] < 0) first -= tensor->strides[i] * (tensor->dims[i] - 1);
  }
  tensor->data = data + static_cast<size_t>(first) * bytes;
  int64_t count = 1;
  for (int i = 0; i < tensor->rank; ++i) count *= tensor->dims[i];
  for (int64_t e = 0; e < count; ++e) {
    int64_t rest = e, offset = 0;
    for (int i = tensor->rank; i-- > 0;) {
      offset += rest % tensor->dims[i] * tensor->strides[i];
      rest /= tensor->dims[i];
    }
    std::memcpy(static_cast<char*>(tensor->data) + offset * static_cast<int64_t>(bytes),
                static_cast<char*>(old.data) + e * static_cast<int64_t>(bytes), bytes);
  }
}

// The elements of a tensor of any strides, in logical order.
std::vector<uint8_t> Elements(const mlap_tensor& tensor) {
  const size_t bytes = DtypeBytes(tensor.dtype);
  std::vector<uint8_t> elements;
  int64_t count = 1;
  for (int i = 0; i < tensor.rank; ++i) count *= tensor.dims[i];
  for (int64_t e = 0; e < count; ++e) {
    int64_t rest = e, offset = 0, dense = 1;
    for (int i = tensor.rank; i-- > 0;) {
      const bool is_contiguous = tensor.strides[0] == 0 && tensor.strides[tensor.rank - 1] == 0;
      offset += rest % tensor.dims[i] * (is_contiguous ? dense : tensor.strides[i]);
      dense *= tensor.dims[i];
      rest /= tensor.dims[i];
    }
    const auto* at = static_cast<const uint8_t*>(tensor.data) + offset * static_cast<int64_t>(bytes);
    elements.insert(elements.end(), at, at + bytes);
  }
  return elements;
}

TEST_P(WeightLayouts, StridesOfTheCallDoNotMatter) {
  NativeCall plain(GetParam());
  ASSERT_EQ(plain.Run(Context()), MLAP_OK) << mlap_last_error();
  for (const Spread spread : {Spread::kGaps, Spread::kReversed, Spread::kBackwards}) {
    SCOPED_TRACE(static_cast<int>(spread));
    Memory memory;
    NativeCall strided(GetParam());
    for (const NamedTensor& tensor : strided.Given()) {
      if (tensor.name.rfind("intermediates.", 0) == 0) continue;
      SpreadTensor(tensor.tensor, spread, &memory);
    }
    strided.reference.intermediates = nullptr;
    ASSERT_EQ(strided.Run(Context()), MLAP_OK) << mlap_last_error();
    for (const NamedTensor& tensor : strided.Given()) {
      if (!strided.IsWritten(tensor.name) || tensor.name.rfind("intermediates.", 0) == 0) continue;
      EXPECT_EQ(Elements(*tensor.tensor), Elements(*plain.Tensor(tensor.name))) << tensor.name;
    }
    // Between the elements nothing is written.
    if (spread != Spread::kGaps) continue;
    for (const NamedTensor& tensor : strided.Given()) {
      if (!strided.IsWritten(tensor.name) || tensor.name.rfind("intermediates.", 0) == 0) continue;
      const auto* first = static_cast<const uint8_t*>(tensor.tensor->data);
      const size_t bytes = DtypeBytes(tensor.tensor->dtype);
      for (size_t i = bytes; i < 3 * bytes; ++i) EXPECT_EQ(first[i], 0xFF) << tensor.name;
    }
  }
}

}  // namespace
}  // namespace mlap::test
