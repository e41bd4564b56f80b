// aclDumpOpTensors: raw tensor contents for debugging.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "aclnn/acl_meta.h"
#include "aclnn/aclnn_status.h"
#include "cann/runtime/recent_error.h"
#include "cann/runtime/runtime_state.h"
#include "cann/runtime/tensor_table.h"

namespace mlap::cann {
namespace {

struct DumpFile {
  std::string path;
  TensorDescriptor tensor;
};

// Types whose elements are whole bytes, so that aclDataTypeSize is the distance between them in memory.
bool HasWholeBytes(aclDataType dtype) {
  const int value = static_cast<int>(dtype);
  return aclDataTypeSize(dtype) != 0 && value != ACL_INT4 && value != ACL_UINT1 && value <= ACL_FLOAT8_E8M0;
}

// Calls write(element position) in row-major order until it fails. Unsigned arithmetic: strides may be negative.
template <class Write>
bool ForEachElement(const TensorDescriptor& tensor, size_t axis, uint64_t position, const Write& write) {
  if (axis == tensor.rank) return write(position);
  for (int64_t i = 0; i < tensor.view_dims[axis]; ++i) {
    if (!ForEachElement(tensor, axis + 1, position, write)) return false;
    position += static_cast<uint64_t>(tensor.view_strides[axis]);
  }
  return true;
}

bool WriteFile(const DumpFile& dump) {
  std::FILE* const file = std::fopen(dump.path.c_str(), "wb");
  if (file == nullptr) return false;
  const size_t element_bytes = aclDataTypeSize(dump.tensor.dtype);
  const uintptr_t data = reinterpret_cast<uintptr_t>(dump.tensor.data);
  const auto write = [&](uint64_t position) {
    return data != 0 &&
           std::fwrite(reinterpret_cast<const void*>(data + position * element_bytes), element_bytes, 1, file) == 1;
  };
  const bool is_written = ForEachElement(dump.tensor, 0, static_cast<uint64_t>(dump.tensor.offset), write);
  return std::fclose(file) == 0 && is_written;
}

// A name as part of a file name.
std::string Plain(const char* name) {
  std::string plain = name;
  for (char& c : plain) {
    if (c == '/') c = '_';
  }
  return plain;
}

aclnnStatus Dump(const char* op_type, const char* tensor_name, aclTensor** tensors, size_t num_inputs,
                 size_t num_outputs, aclrtStream stream) {
  constexpr const char* kFunction = "aclDumpOpTensors";
  const char* const directory = std::getenv("MLAP_DUMP_DIR");
  if (directory == nullptr || *directory == '\0') return 0;
  if (const aclnnStatus status = RequireOpPointer(kFunction, "opType", op_type)) return status;
  if (const aclnnStatus status = RequireOpPointer(kFunction, "tensorName", tensor_name)) return status;
  if (num_inputs == 0 && num_outputs == 0) return 0;
  constexpr size_t kMaxTensors = std::numeric_limits<size_t>::max() / sizeof(aclTensor*);
  if (num_inputs > kMaxTensors || num_outputs > kMaxTensors - num_inputs) {
    return FailOp(ACLNN_ERR_PARAM_INVALID,
                  RefusalText(kFunction, "inputNum, outputNum", "the numbers of tensors in an array",
                              std::to_string(num_inputs) + ", " + std::to_string(num_outputs), ""));
  }
  if (const aclnnStatus status = RequireOpPointer(kFunction, "tensors", tensors)) return status;

  static std::atomic<uint64_t> num_dumps{0};
  const std::string prefix = std::string(directory) + "/" + Plain(op_type) + "." + Plain(tensor_name) + "." +
                             std::to_string(num_dumps++) + ".";
  std::vector<DumpFile> files;
  for (size_t i = 0; i < num_inputs + num_outputs; ++i) {
    if (tensors[i] == nullptr) continue;
    const std::string parameter = "tensors[" + std::to_string(i) + "]";
    DumpFile file;
    if (!CopyDescriptor(tensors[i], &file.tensor)) {
      return RefuseOpHandle(kFunction, parameter.c_str(), tensors[i], HandleKind::kTensor);
    }
    if (!HasWholeBytes(file.tensor.dtype)) {
      return FailOp(ACLNN_ERR_PARAM_INVALID,
                    RefusalText(kFunction, parameter.c_str(), "elements of whole bytes",
                                "aclDataType " + std::to_string(static_cast<int>(file.tensor.dtype)), ""));
    }
    file.path = prefix + (i < num_inputs ? "input." + std::to_string(i) : "output." + std::to_string(i - num_inputs));
    file.path += ".bin";
    files.push_back(std::move(file));
  }
  const aclError code = PushOnStream(kFunction, stream, [files = std::move(files)]() -> TaskResult {
    for (const DumpFile& file : files) {
      if (!WriteFile(file)) return {ACL_ERROR_RT_FILE_WRITE, "aclDumpOpTensors could not write " + file.path};
    }
    return {};
  });
  return code == 0 ? 0 : ACLNN_ERR_RUNTIME_ERROR;
}

}  // namespace
}  // namespace mlap::cann

using namespace mlap::cann;

aclnnStatus aclDumpOpTensors(const char* opType, const char* tensorName, aclTensor** tensors, size_t inputNum,
                             size_t outputNum, aclrtStream stream) {
  return Guarded("aclDumpOpTensors", [&] { return Dump(opType, tensorName, tensors, inputNum, outputNum, stream); });
}
