// Asking for memory before it is written.
#ifndef MLAP_CORE_WRITE_AHEAD_H_
#define MLAP_CORE_WRITE_AHEAD_H_

#include <cstdint>

namespace mlap {

// The lines of num_bytes from `begin`, to be written soon. Harmless for any address. Not the compiler's builtin on x86:
// gcc takes a function that does nothing else for one without effects and drops its calls.
static inline void AskToWrite(const void* begin, int64_t num_bytes) {
  constexpr int64_t kLineBytes = 64;
  const char* line = static_cast<const char*>(begin);
  for (const char* const end = line + num_bytes; line < end; line += kLineBytes) {
#if defined(__x86_64__)
    __asm__ volatile("prefetchw (%0)" : : "r"(line));
#else
    __builtin_prefetch(line, 1);
#endif
  }
}

}  // namespace mlap

#endif  // MLAP_CORE_WRITE_AHEAD_H_
