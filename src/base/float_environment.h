// The floating-point environment that the numeric contract assumes: round to nearest, denormals kept, no traps.
#ifndef MLAP_BASE_FLOAT_ENVIRONMENT_H_
#define MLAP_BASE_FLOAT_ENVIRONMENT_H_

#include <cfenv>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace mlap {

// Sets that environment for the calling thread while the object lives. Threads inherit the environment of the one that
// starts them, and programs change theirs: fesetround, or flushing denormals for speed.
class DefaultFloatEnvironment {
 public:
  DefaultFloatEnvironment() {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
#if defined(__x86_64__)
    _mm_setcsr(0x1f80);  // the C library may leave flush-to-zero and denormals-are-zero as they are
#endif
  }
  ~DefaultFloatEnvironment() { std::fesetenv(&saved_); }
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;

 private:
  std::fenv_t saved_;
};

}  // namespace mlap

#endif  // MLAP_BASE_FLOAT_ENVIRONMENT_H_
