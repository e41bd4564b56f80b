#include "api/strided_copy.h"

#include <algorithm>
#include <cstring>

namespace mlap {
namespace {

void CopyRun(const char* from, int64_t from_step, char* to, int64_t to_step, int64_t count, int64_t bytes) {
  if (from_step == bytes && to_step == bytes) {
    std::memmove(to, from, static_cast<size_t>(count * bytes));
    return;
  }
  for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * to_step, from + i * from_step, static_cast<size_t>(bytes));
}

// Filled up with leading dimensions of 1.
struct FourDims {
  int64_t size[MLAP_MAX_RANK] = {1, 1, 1, 1};
  int64_t step[MLAP_MAX_RANK] = {};  // bytes

  explicit FourDims(const ByteView& view) {
    for (int i = 0; i < std::min(view.dims.rank, MLAP_MAX_RANK); ++i) {
      const int place = MLAP_MAX_RANK - view.dims.rank + i;
      size[place] = view.dims.size[i];
      step[place] = view.steps[i];
    }
  }
};

}  // namespace

ByteView ToByteView(const StridedView& view) {
  ByteView bytes = {view.data, view.element_bytes, view.dims, {}};
  for (int i = 0; i < view.dims.rank; ++i) bytes.steps[i] = view.strides[i] * view.element_bytes;
  return bytes;
}

void CopyStrided(const StridedView& from, const StridedView& to) { CopyBytes(ToByteView(from), ToByteView(to)); }

void CopyBytes(const ByteView& from, const ByteView& to) {
  if (from.dims.Count() == 0) return;
  const FourDims a(from);
  const FourDims b(to);
  for (int64_t i = 0; i < a.size[0]; ++i) {
    for (int64_t j = 0; j < a.size[1]; ++j) {
      for (int64_t k = 0; k < a.size[2]; ++k) {
        CopyRun(from.data + i * a.step[0] + j * a.step[1] + k * a.step[2], a.step[3],
                to.data + i * b.step[0] + j * b.step[1] + k * b.step[2], b.step[3], a.size[3], from.element_bytes);
      }
    }
  }
}

StridedView DenseView(const StridedView& like, void* data) {
  StridedView view = like;
  view.data = static_cast<char*>(data);
  int64_t stride = 1;
  for (int i = view.dims.rank; i-- > 0;) {
    view.strides[i] = stride;
    stride *= std::max<int64_t>(view.dims.size[i], 1);
  }
  return view;
}

}  // namespace mlap
