// Handles that are recognised without being dereferenced.
//
// A handle is a number that is never issued twice, dressed as a pointer: bit 62 is set, so it is no address on any
// machine this runs on, and touching it faults at once; then the kind; then a serial number. A destroyed handle can
// therefore never be mistaken for a newer object, as it could if it were the address of freed memory.
#ifndef MLAP_CANN_RUNTIME_HANDLE_TABLE_H_
#define MLAP_CANN_RUNTIME_HANDLE_TABLE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace mlap::cann {

enum class HandleKind : uint8_t {
  kContext = 1,
  kStream,
  kEvent,
  kTensor,
  kScalar,
  kIntArray,
  kFloatArray,
  kBoolArray,
  kTensorList,
  kScalarList,
  kExecutor,
};

// The C type of a kind, for example "aclrtStream".
const char* HandleTypeName(HandleKind kind);

// Says what `handle` is, for a text about one that is not a live object of kind `expected`.
std::string DescribeNonHandle(const void* handle, HandleKind expected);

static_assert(sizeof(void*) == 8, "handles need 64-bit pointers");
inline constexpr int kHandleSerialShift = 4;
inline constexpr int kHandleKindShift = 48;
inline constexpr uint64_t kHandleTag = uint64_t{1} << 62;

// The live objects of one kind. Thread-safe.
template <class Object>
class HandleTable {
 public:
  explicit HandleTable(HandleKind kind) : kind_(kind) {}

  HandleKind kind() const { return kind_; }

  void* Add(std::shared_ptr<Object> object) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const uint64_t value =
        kHandleTag | uint64_t{static_cast<uint8_t>(kind_)} << kHandleKindShift | next_serial_ << kHandleSerialShift;
    objects_.emplace(value, std::move(object));
    ++next_serial_;
    return reinterpret_cast<void*>(value);
  }

  // Null if `handle` is not live.
  std::shared_ptr<Object> Find(const void* handle) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = objects_.find(reinterpret_cast<uint64_t>(handle));
    return found == objects_.end() ? nullptr : found->second;
  }

  // The same, and ends the handle's life: of several threads exactly one gets the object.
  std::shared_ptr<Object> Remove(const void* handle) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = objects_.find(reinterpret_cast<uint64_t>(handle));
    if (found == objects_.end()) return nullptr;
    std::shared_ptr<Object> object = std::move(found->second);
    objects_.erase(found);
    return object;
  }

  // Calls visit(object) while no other thread can reach the table; false if `handle` is not live.
  template <class F>
  bool Visit(const void* handle, F&& visit) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = objects_.find(reinterpret_cast<uint64_t>(handle));
    if (found == objects_.end()) return false;
    std::forward<F>(visit)(*found->second);
    return true;
  }

  // In the order of creation.
  std::vector<std::shared_ptr<Object>> All() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<std::shared_ptr<Object>> all;
    all.reserve(objects_.size());
    for (const auto& [value, object] : objects_) all.push_back(object);
    return all;
  }

 private:
  const HandleKind kind_;
  mutable std::mutex mutex_;
  uint64_t next_serial_ = 1;
  std::map<uint64_t, std::shared_ptr<Object>> objects_;
};

}  // namespace mlap::cann

#endif  // MLAP_CANN_RUNTIME_HANDLE_TABLE_H_
