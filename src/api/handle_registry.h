// What the opaque handles of the C interface stand for.
#ifndef MLAP_API_HANDLE_REGISTRY_H_
#define MLAP_API_HANDLE_REGISTRY_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

namespace mlap {

// Where a table's handles start, below the step from one to the next.
enum class HandleKind : uintptr_t { kContext = 16, kWeights = 32 };

// Handles are numbers in the shape of pointers, never given twice: one that was destroyed, or made up, is not found and
// nothing is read through it. Nor is a handle of one table found in another, for tables have kinds of their own.
// Objects live until their last user is done. Thread-safe; only Add allocates.
template <class Handle, class Object>
class HandleTable {
 public:
  explicit HandleTable(HandleKind kind) : next_(static_cast<uintptr_t>(kind)) {}

  Handle* Add(std::shared_ptr<Object> object) {
    const std::unique_lock<std::shared_mutex> lock(mutex_);
    next_ += kStep;
    objects_.emplace(next_, std::move(object));
    return reinterpret_cast<Handle*>(next_);
  }

  // Null if there is no such object.
  std::shared_ptr<Object> Find(const Handle* handle) const {
    const std::shared_lock<std::shared_mutex> lock(mutex_);
    const auto found = objects_.find(reinterpret_cast<uintptr_t>(handle));
    return found == objects_.end() ? nullptr : found->second;
  }

  // False if there is no such object.
  bool Remove(const Handle* handle) {
    std::shared_ptr<Object> last;  // declared first: destroyed after the lock is given back
    const std::unique_lock<std::shared_mutex> lock(mutex_);
    const auto found = objects_.find(reinterpret_cast<uintptr_t>(handle));
    if (found == objects_.end()) return false;
    last = std::move(found->second);
    objects_.erase(found);
    return true;
  }

 private:
  static constexpr uintptr_t kStep = 64;

  mutable std::shared_mutex mutex_;
  std::unordered_map<uintptr_t, std::shared_ptr<Object>> objects_;
  uintptr_t next_;
};

}  // namespace mlap

#endif  // MLAP_API_HANDLE_REGISTRY_H_
