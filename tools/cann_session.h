// Ownership of what the CANN interface hands out.
#ifndef MLAP_TOOLS_CANN_SESSION_H_
#define MLAP_TOOLS_CANN_SESSION_H_

#include <acl/acl.h>
#include <aclnn/acl_meta.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace mlap::tools {

// Throws ToolError with the status, its name and the library's text unless `status` is 0. `action` begins the text.
void RequireSuccess(int status, std::string_view action);

// The runtime, a device and a stream, for as long as the object lives.
class CannSession {
 public:
  explicit CannSession(int32_t device_id);
  ~CannSession();
  CannSession(const CannSession&) = delete;
  CannSession& operator=(const CannSession&) = delete;

  aclrtStream stream() const { return stream_; }

  // The device whose limits the operators apply. Throws ToolError if MLAP_SOC is wrong.
  static std::string_view SocName();

 private:
  int32_t device_id_;
  aclrtStream stream_ = nullptr;
};

// Device memory; of no bytes: a null pointer.
class DeviceBuffer {
 public:
  explicit DeviceBuffer(size_t num_bytes);
  ~DeviceBuffer();
  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&&) = delete;

  void Upload(const std::byte* bytes);  // num_bytes of them
  void Download(std::byte* bytes) const;
  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
  size_t num_bytes_;
};

// A tensor description.
class AclTensor {
 public:
  AclTensor(const std::vector<int64_t>& view_dims, aclDataType dtype, aclFormat format,
            const std::vector<int64_t>& storage_dims, void* data);
  ~AclTensor();
  AclTensor(AclTensor&& other) noexcept;
  AclTensor& operator=(AclTensor&&) = delete;

  aclTensor* get() const { return tensor_; }

 private:
  aclTensor* tensor_ = nullptr;
};

}  // namespace mlap::tools

#endif  // MLAP_TOOLS_CANN_SESSION_H_
