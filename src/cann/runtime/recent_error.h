// Texts and codes of failures, per thread: what aclGetRecentErrMsg and aclrtGetLastError report.
#ifndef MLAP_CANN_RUNTIME_RECENT_ERROR_H_
#define MLAP_CANN_RUNTIME_RECENT_ERROR_H_

#include <new>
#include <string>
#include <type_traits>
#include <utility>

#include "acl/acl_base.h"
#include "aclnn/acl_meta.h"

namespace mlap::cann {

// Adds `text` to the calling thread's texts and returns `code`, which aclrtGetLastError remembers if it is a runtime
// code. Never throws: without memory the text is lost, the code is not.
aclError Fail(aclError code, std::string text) noexcept;

// The same for the status of an operator or of a function of acl_meta.h.
aclnnStatus FailOp(aclnnStatus status, std::string text) noexcept;

// The one shape of all texts, for example
// "aclrtMalloc: size: expected at least 1, found 0; pass the number of bytes to allocate".
std::string RefusalText(const char* function, const char* parameter, const std::string& expected,
                        const std::string& found, const std::string& advice);
// The one about a pointer that is null.
std::string NullPointerText(const char* function, const char* parameter);

// The calling thread's texts, newest first, one a line; null if there are none. They are forgotten; the string is valid
// until the next call on the thread.
const char* TakeRecentTexts() noexcept;

// The calling thread's last runtime code.
aclError PeekLastError() noexcept;
aclError TakeLastError() noexcept;

// 107xxx, 207xxx and 507xxx: the codes of the layer below the operators.
bool IsRuntimeCode(int code) noexcept;

// Records the exception that is being handled as a failure of `function` and returns its code. Functions named
// aclrt..., aclInit... and aclFinalize... get runtime codes (207001 without memory, 500000 otherwise), all others
// operator statuses (361001 without memory, 561000 otherwise).
int FailWithCurrentException(const char* function) noexcept;

// Runs `body` and returns its result, so that nothing is thrown across the C boundary: an exception becomes a code, a
// null pointer if `body` returns a pointer, or nothing if it returns nothing.
template <class F>
auto Guarded(const char* function, F&& body) noexcept -> std::invoke_result_t<F> {
  using Result = std::invoke_result_t<F>;
  try {
    return std::forward<F>(body)();
  } catch (...) {
    const int code = FailWithCurrentException(function);
    if constexpr (std::is_pointer_v<Result>) {
      return nullptr;
    } else if constexpr (!std::is_void_v<Result>) {
      return static_cast<Result>(code);
    }
  }
}

}  // namespace mlap::cann

#endif  // MLAP_CANN_RUNTIME_RECENT_ERROR_H_
