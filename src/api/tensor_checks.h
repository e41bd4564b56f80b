// Checks of the tensors of the C interface, and the texts of refusals.
#ifndef MLAP_API_TENSOR_CHECKS_H_
#define MLAP_API_TENSOR_CHECKS_H_

#include <cstdint>
#include <initializer_list>
#include <string>

#include "base/element_type.h"
#include "base/status.h"
#include "mlaprolog/mlaprolog.h"

namespace mlap {

// A row of the table of element types. No row for a number that is no mlap_dtype.
struct DtypeFacts {
  mlap_dtype dtype;
  const char* name;
  int64_t bytes;
  ElementType type;
};
const DtypeFacts* FindDtype(mlap_dtype dtype);

// "BF16", or "type 77".
std::string DtypeText(mlap_dtype dtype);

// The operator's element type of a dtype that has one (all but FLOAT64 and FLOAT16).
ElementType ToElementType(mlap_dtype dtype);
mlap_dtype ToDtype(ElementType type);

// Dimensions without memory of their own: checks of legal calls allocate nothing.
struct Dims {
  int rank = 0;
  int64_t size[MLAP_MAX_RANK] = {};

  Dims() = default;
  Dims(std::initializer_list<int64_t> sizes) {
    for (const int64_t value : sizes) Append(value);
  }
  void Append(int64_t value) { size[rank++] = value; }
  // This one's sizes, then `rest`.
  Dims Then(std::initializer_list<int64_t> rest) const {
    Dims result = *this;
    for (const int64_t value : rest) result.Append(value);
    return result;
  }
  bool operator==(const Dims& other) const;
  int64_t Count() const;
};

std::string DimsText(const Dims& dims);

inline bool IsAbsent(const mlap_tensor& tensor) { return tensor.data == nullptr && tensor.rank == 0; }

// The dimensions of a tensor whose rank has been checked.
Dims DimsOf(const mlap_tensor& tensor);

// A tensor that has been checked, with its strides filled in.
struct StridedView {
  char* data = nullptr;
  int64_t element_bytes = 0;
  Dims dims;
  int64_t strides[MLAP_MAX_RANK] = {};  // elements

  bool IsContiguous() const;
};

// Strides filled in; the tensor's struct must have passed CheckStruct.
StridedView ViewOf(const mlap_tensor& tensor);

// The bytes [first, last) that a view may touch; both null if none.
struct ByteRange {
  const char* first = nullptr;
  const char* last = nullptr;
};
ByteRange RangeOf(const StridedView& view);

enum class Access { kRead, kWrite };

// Collects the first fault of a call's tensors. After one, all checks do nothing.
class TensorChecks {
 public:
  const Status& status() const { return status_; }
  bool ok() const { return status_.ok(); }

  // Without an advice of its own, a refusal says what to pass as `name`.
  void Refuse(const char* name, const std::string& expected, const std::string& found, const char* advice = nullptr);

  // A tensor whose struct makes sense by itself: present, legal rank, type and layout, an aligned address, dimensions
  // and strides that stay below 2^59 elements.
  bool CheckStruct(const char* name, const mlap_tensor& tensor);

  void CheckRank(const char* name, const mlap_tensor& tensor, std::initializer_list<int> ranks);
  void CheckDtype(const char* name, const mlap_tensor& tensor, mlap_dtype dtype);
  void CheckRowMajor(const char* name, const mlap_tensor& tensor);
  void CheckDims(const char* name, const mlap_tensor& tensor, const Dims& dims);
  // Memory behind it, and if it is written, no two elements in one place.
  void CheckMemory(const char* name, const mlap_tensor& tensor, Access access);

  // All of the above: the exact shape and type in row-major layout with any strides.
  bool CheckStrided(const char* name, const mlap_tensor& tensor, mlap_dtype dtype, const Dims& dims, Access access);
  // The same without gaps.
  bool CheckDense(const char* name, const mlap_tensor& tensor, mlap_dtype dtype, const Dims& dims, Access access);
  // Both have passed CheckStruct. They do not share bytes.
  void CheckApart(const char* name, const mlap_tensor& tensor, const char* other_name, const mlap_tensor& other);

 private:
  Status status_;
};

}  // namespace mlap

#endif  // MLAP_API_TENSOR_CHECKS_H_
