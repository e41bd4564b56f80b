// The live aclTensor handles.
#ifndef MLAP_CANN_RUNTIME_TENSOR_TABLE_H_
#define MLAP_CANN_RUNTIME_TENSOR_TABLE_H_

#include "cann/runtime/handle_table.h"
#include "cann/runtime/tensor_descriptor.h"

namespace mlap::cann {

HandleTable<TensorDescriptor>& TensorTable();

// 161001 or 161002, recorded for `function`: `handle` is null, or no live object of kind `expected`.
aclnnStatus RefuseOpHandle(const char* function, const char* parameter, const void* handle, HandleKind expected);

// 161001, recorded for `function`, if `pointer` is null; else 0.
aclnnStatus RequireOpPointer(const char* function, const char* parameter, const void* pointer);

}  // namespace mlap::cann

#endif  // MLAP_CANN_RUNTIME_TENSOR_TABLE_H_
