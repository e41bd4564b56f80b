#include "cann_session.h"

#include <aclnn/aclnn_status.h>

#include <algorithm>
#include <string>
#include <utility>

#include "tool_error.h"

namespace mlap::tools {
namespace {

std::string_view StatusName(int status) {
  switch (status) {
    case ACLNN_ERR_PARAM_NULLPTR:
      return " (a required argument is null)";
    case ACLNN_ERR_PARAM_INVALID:
      return " (a type, shape, format or attribute is refused)";
    case ACLNN_ERR_RUNTIME_ERROR:
      return " (the runtime refuses)";
    case ACLNN_ERR_INNER_TILING_ERROR:
      return " (the device does not offer these sizes or types)";
    default:
      return "";
  }
}

// The library's texts begin with the function's name, which `action` has said already.
std::string_view WithoutFunction(std::string_view text, std::string_view action) {
  const size_t colon = text.find(": ");
  const bool is_said = text.starts_with("acl") && colon != std::string_view::npos &&
                       action.find(text.substr(0, colon)) != std::string_view::npos;
  return is_said ? text.substr(colon + 2) : text;
}

}  // namespace

void RequireSuccess(int status, std::string_view action) {
  if (status == 0) return;
  const char* texts = aclGetRecentErrMsg();
  std::string text = texts != nullptr ? texts : "the library left no text";
  while (!text.empty() && text.back() == '\n') text.pop_back();
  // Several failures stand on lines of their own; this is one message.
  std::string joined;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    joined += joined.empty() ? "" : "; ";
    joined += WithoutFunction(std::string_view(text).substr(begin, end - begin), action);
    begin = end + 1;
  }
  Fail("{}: status {}{}: {}", action, status, StatusName(status), joined);
}

CannSession::CannSession(int32_t device_id) : device_id_(device_id) {
  const aclError status = aclInit(nullptr);
  if (status != ACL_ERROR_REPEAT_INITIALIZE) RequireSuccess(status, "aclInit");
  try {
    RequireSuccess(aclrtSetDevice(device_id), "aclrtSetDevice");
    RequireSuccess(aclrtCreateStream(&stream_), "aclrtCreateStream");
  } catch (...) {
    aclFinalize();
    throw;
  }
}

CannSession::~CannSession() {
  aclrtDestroyStream(stream_);
  aclrtResetDevice(device_id_);
  aclFinalize();
}

std::string_view CannSession::SocName() {
  const char* name = aclrtGetSocName();
  if (name == nullptr) {
    const char* text = aclGetRecentErrMsg();
    Fail("{}", text != nullptr ? WithoutFunction(text, "aclrtGetSocName") : "MLAP_SOC has a wrong value");
  }
  return name;
}

DeviceBuffer::DeviceBuffer(size_t num_bytes) : num_bytes_(num_bytes) {
  if (num_bytes != 0) RequireSuccess(aclrtMalloc(&data_, num_bytes, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
}

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), num_bytes_(other.num_bytes_) {}

DeviceBuffer::~DeviceBuffer() {
  if (data_ != nullptr) aclrtFree(data_);
}

void DeviceBuffer::Upload(const std::byte* bytes) {
  RequireSuccess(aclrtMemcpy(data_, num_bytes_, bytes, num_bytes_, ACL_MEMCPY_HOST_TO_DEVICE), "aclrtMemcpy");
}

void DeviceBuffer::Download(std::byte* bytes) const {
  RequireSuccess(aclrtMemcpy(bytes, num_bytes_, data_, num_bytes_, ACL_MEMCPY_DEVICE_TO_HOST), "aclrtMemcpy");
}

AclTensor::AclTensor(const std::vector<int64_t>& view_dims, aclDataType dtype, aclFormat format,
                     const std::vector<int64_t>& storage_dims, void* data)
    : tensor_(aclCreateTensor(view_dims.data(), view_dims.size(), dtype, nullptr, 0, format, storage_dims.data(),
                              storage_dims.size(), data)) {
  if (tensor_ == nullptr) RequireSuccess(ACLNN_ERR_PARAM_INVALID, "aclCreateTensor");
}

AclTensor::AclTensor(AclTensor&& other) noexcept : tensor_(std::exchange(other.tensor_, nullptr)) {}

AclTensor::~AclTensor() { aclDestroyTensor(tensor_); }

}  // namespace mlap::tools
