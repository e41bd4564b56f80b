#include "api/tensor_checks.h"

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "api/refusal_advice.h"

namespace mlap {
namespace {

// The last two are no types of the operator; no call gets as far as asking for theirs.
constexpr DtypeFacts kDtypes[] = {
    {MLAP_BF16, "BF16", 2, ElementType::kBf16},          {MLAP_INT8, "INT8", 1, ElementType::kInt8},
    {MLAP_FLOAT32, "FLOAT32", 4, ElementType::kFloat32}, {MLAP_INT64, "INT64", 8, ElementType::kInt64},
    {MLAP_INT32, "INT32", 4, ElementType::kInt32},       {MLAP_FLOAT8_E4M3, "FLOAT8_E4M3", 1, ElementType::kE4m3},
    {MLAP_HIFLOAT8, "HIFLOAT8", 1, ElementType::kHiF8},  {MLAP_FLOAT8_E8M0, "FLOAT8_E8M0", 1, ElementType::kE8m0},
    {MLAP_FLOAT64, "FLOAT64", 8, ElementType::kFloat32}, {MLAP_FLOAT16, "FLOAT16", 2, ElementType::kBf16},
};

constexpr const char* kLayouts[] = {"MLAP_ROW_MAJOR", "MLAP_FRACTAL_NZ", "MLAP_OUT_IN"};

constexpr int64_t kMostElements = int64_t{1} << 59;

// Whether no two elements lie in one place. Sufficient and, for what programs make by slicing and permuting, necessary:
// ordered by stride, each dimension steps beyond all that the smaller ones reach.
bool IsWithoutOverlap(const StridedView& view) {
  struct Step {
    int64_t stride;
    int64_t size;
  };
  Step steps[MLAP_MAX_RANK];
  int num_steps = 0;
  for (int i = 0; i < view.dims.rank; ++i) {
    if (view.dims.size[i] <= 1) continue;
    const Step step = {std::abs(view.strides[i]), view.dims.size[i]};
    int place = num_steps++;
    for (; place > 0 && steps[place - 1].stride > step.stride; --place) steps[place] = steps[place - 1];
    steps[place] = step;
  }
  int64_t reach = 0;  // offset of the last element so far
  for (int i = 0; i < num_steps; ++i) {
    if (steps[i].stride <= reach) return false;
    reach += steps[i].stride * (steps[i].size - 1);
  }
  return true;
}

}  // namespace

const DtypeFacts* FindDtype(mlap_dtype dtype) {
  for (const DtypeFacts& row : kDtypes) {
    if (row.dtype == dtype) return &row;
  }
  return nullptr;
}

std::string DtypeText(mlap_dtype dtype) {
  const DtypeFacts* facts = FindDtype(dtype);
  return facts != nullptr ? facts->name : "type " + std::to_string(static_cast<int>(dtype));
}

ElementType ToElementType(mlap_dtype dtype) { return FindDtype(dtype)->type; }

mlap_dtype ToDtype(ElementType type) {
  for (const DtypeFacts& row : kDtypes) {
    if (row.type == type) return row.dtype;
  }
  return MLAP_BF16;
}

bool Dims::operator==(const Dims& other) const {
  return rank == other.rank && std::equal(size, size + rank, other.size);
}

int64_t Dims::Count() const {
  int64_t count = 1;
  for (int i = 0; i < rank; ++i) count *= size[i];
  return count;
}

std::string DimsText(const Dims& dims) {
  std::string text = "[";
  for (int i = 0; i < dims.rank; ++i) text += (i == 0 ? "" : ", ") + std::to_string(dims.size[i]);
  return text + "]";
}

Dims DimsOf(const mlap_tensor& tensor) {
  Dims dims;
  for (int i = 0; i < std::clamp(tensor.rank, 0, MLAP_MAX_RANK); ++i) dims.Append(tensor.dims[i]);
  return dims;
}

StridedView ViewOf(const mlap_tensor& tensor) {
  StridedView view;
  view.data = static_cast<char*>(tensor.data);
  view.element_bytes = FindDtype(tensor.dtype)->bytes;
  view.dims = DimsOf(tensor);
  bool all_zero = true;
  for (int i = 0; i < view.dims.rank; ++i) all_zero &= tensor.strides[i] == 0;
  int64_t stride = 1;
  for (int i = view.dims.rank; i-- > 0;) {
    view.strides[i] = all_zero ? stride : tensor.strides[i];
    stride *= std::max<int64_t>(view.dims.size[i], 1);
  }
  return view;
}

bool StridedView::IsContiguous() const {
  int64_t expected = 1;
  for (int i = dims.rank; i-- > 0;) {
    if (dims.size[i] != 1 && strides[i] != expected) return false;
    expected *= std::max<int64_t>(dims.size[i], 1);
  }
  return true;
}

ByteRange RangeOf(const StridedView& view) {
  if (view.dims.Count() == 0) return {};
  int64_t low = 0;
  int64_t high = 0;
  for (int i = 0; i < view.dims.rank; ++i) {
    const int64_t reach = view.strides[i] * (view.dims.size[i] - 1);
    (reach < 0 ? low : high) += reach;
  }
  return {view.data + low * view.element_bytes, view.data + (high + 1) * view.element_bytes};
}

void TensorChecks::Refuse(const char* name, const std::string& expected, const std::string& found, const char* advice) {
  if (!ok()) return;
  status_ = Status(StatusCode::kInvalidArgument, std::string(name) + ": expected " + expected + ", found " + found +
                                                     "; " + (advice != nullptr ? advice : AdviceFor(name)));
}

bool TensorChecks::CheckStruct(const char* name, const mlap_tensor& tensor) {
  if (!ok()) return false;
  if (IsAbsent(tensor)) {
    Refuse(name, "a tensor", "none");
  } else if (tensor.rank < 1 || tensor.rank > MLAP_MAX_RANK) {
    Refuse(name, "a rank from 1 to 4", std::to_string(tensor.rank));
  } else if (FindDtype(tensor.dtype) == nullptr) {
    Refuse(name, "an mlap_dtype", DtypeText(tensor.dtype), "set dtype to a constant of mlap_dtype");
  } else if (tensor.layout < MLAP_ROW_MAJOR || tensor.layout > MLAP_OUT_IN) {
    Refuse(name, "an mlap_layout", "layout " + std::to_string(static_cast<int>(tensor.layout)),
           "set it to MLAP_ROW_MAJOR, MLAP_FRACTAL_NZ or MLAP_OUT_IN");
  }
  if (!ok()) return false;
  int64_t count = 1;
  for (int i = 0; i < tensor.rank; ++i) {
    if (tensor.dims[i] < 0 || (tensor.dims[i] > 0 && __builtin_mul_overflow(count, tensor.dims[i], &count)) ||
        count > kMostElements) {
      Refuse(name, "dimensions that are not negative and fit into memory", DimsText(DimsOf(tensor)));
      return false;
    }
  }
  int64_t reach = 0;
  for (int i = 0; i < tensor.rank; ++i) {
    const int64_t stride = tensor.strides[i];
    int64_t step = 0;
    if (stride < -kMostElements || stride > kMostElements ||
        __builtin_mul_overflow(std::abs(stride), std::max<int64_t>(tensor.dims[i] - 1, 0), &step) ||
        __builtin_add_overflow(reach, step, &reach) || reach > kMostElements) {
      Refuse(name, "strides that stay in memory", "stride " + std::to_string(stride),
             "strides count elements; all zero means contiguous");
      return false;
    }
  }
  const auto bytes = static_cast<uintptr_t>(FindDtype(tensor.dtype)->bytes);
  if (reinterpret_cast<uintptr_t>(tensor.data) % bytes != 0) {
    Refuse(name, "an address that is a multiple of " + std::to_string(bytes) + " bytes", "one between two elements",
           "copy the tensor to aligned memory");
  }
  return ok();
}

void TensorChecks::CheckRank(const char* name, const mlap_tensor& tensor, std::initializer_list<int> ranks) {
  if (!ok() || std::find(ranks.begin(), ranks.end(), tensor.rank) != ranks.end()) return;
  std::string expected;
  for (const int rank : ranks) expected += (expected.empty() ? "" : " or ") + std::to_string(rank);
  Refuse(name, expected + " dimensions", std::to_string(tensor.rank) + ", shape " + DimsText(DimsOf(tensor)));
}

void TensorChecks::CheckDtype(const char* name, const mlap_tensor& tensor, mlap_dtype dtype) {
  if (ok() && tensor.dtype != dtype) Refuse(name, DtypeText(dtype), DtypeText(tensor.dtype));
}

void TensorChecks::CheckRowMajor(const char* name, const mlap_tensor& tensor) {
  if (ok() && tensor.layout != MLAP_ROW_MAJOR) {
    Refuse(name, "layout MLAP_ROW_MAJOR", kLayouts[tensor.layout],
           "of a call's tensors, only weight matrices have another");
  }
}

void TensorChecks::CheckDims(const char* name, const mlap_tensor& tensor, const Dims& dims) {
  if (ok() && !(DimsOf(tensor) == dims)) Refuse(name, "shape " + DimsText(dims), DimsText(DimsOf(tensor)));
}

void TensorChecks::CheckMemory(const char* name, const mlap_tensor& tensor, Access access) {
  if (!ok() || DimsOf(tensor).Count() == 0) return;
  if (tensor.data == nullptr) Refuse(name, "memory", "a null pointer", "point data at the first element");
  if (ok() && access == Access::kWrite && !IsWithoutOverlap(ViewOf(tensor))) {
    Refuse(name, "strides that give each element a place of its own", "elements that overlap",
           "write to a tensor that is not broadcast");
  }
}

bool TensorChecks::CheckStrided(const char* name, const mlap_tensor& tensor, mlap_dtype dtype, const Dims& dims,
                                Access access) {
  if (!CheckStruct(name, tensor)) return false;
  CheckDtype(name, tensor, dtype);
  CheckDims(name, tensor, dims);
  CheckRowMajor(name, tensor);
  CheckMemory(name, tensor, access);
  return ok();
}

bool TensorChecks::CheckDense(const char* name, const mlap_tensor& tensor, mlap_dtype dtype, const Dims& dims,
                              Access access) {
  if (!CheckStrided(name, tensor, dtype, dims, access)) return false;
  if (!ViewOf(tensor).IsContiguous()) {
    Refuse(name, "a contiguous tensor", "strides with gaps", "pass a contiguous tensor and copy from it");
  }
  return ok();
}

void TensorChecks::CheckApart(const char* name, const mlap_tensor& tensor, const char* other_name,
                              const mlap_tensor& other) {
  if (!ok()) return;
  const ByteRange a = RangeOf(ViewOf(tensor));
  const ByteRange b = RangeOf(ViewOf(other));
  const std::less<const char*> before;
  if (before(a.first, b.last) && before(b.first, a.last)) {
    Refuse(name, std::string("memory apart from that of ") + other_name, "memory that overlaps it",
           "pass a tensor with memory of its own");
  }
}

}  // namespace mlap
