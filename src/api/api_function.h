// The entry of every function of the C interface that takes a struct, and the exit of every function.
#ifndef MLAP_API_API_FUNCTION_H_
#define MLAP_API_API_FUNCTION_H_

#include <exception>
#include <new>
#include <string>

#include "api/last_error.h"
#include "mlaprolog/mlaprolog.h"

namespace mlap {

// Refuses a struct that is null or of a size that no version of the interface has.
template <class Struct>
mlap_status CheckStructSize(const char* function, const char* name, const Struct* args) {
  if (args != nullptr && args->struct_size == sizeof(Struct)) return MLAP_OK;
  return FailWith(MLAP_INVALID_ARGUMENT,
                  std::string(function) + ": " + name + ": expected a struct with struct_size " +
                      std::to_string(sizeof(Struct)) + ", found " +
                      (args == nullptr ? std::string("null") : "struct_size " + std::to_string(args->struct_size)) +
                      "; set it with sizeof or the struct's init function, and build against this library's header");
}

// Refuses an out-parameter that is null.
inline mlap_status CheckPlace(const char* function, const char* name, const void* place) {
  if (place != nullptr) return MLAP_OK;
  return FailWith(MLAP_INVALID_ARGUMENT,
                  std::string(function) + ": " + name + ": expected a place, found null; pass its address");
}

// A failure of an internal operation, with the function's name in front.
inline mlap_status FailFunction(const char* function, const Status& status) {
  return FailWith(ToApiStatus(status), std::string(function) + ": " + status.text());
}

// Runs `body`, which returns an mlap_status; what it throws becomes a status.
template <class Body>
mlap_status Guarded(const char* function, const Body& body) noexcept {
  try {
    try {
      return body();
    } catch (const std::bad_alloc&) {
      return FailWith(MLAP_OUT_OF_MEMORY, std::string(function) + ": out of memory; use smaller sizes");
    } catch (const std::exception& error) {
      return FailWith(MLAP_INVALID_ARGUMENT, std::string(function) + ": " + error.what());
    }
  } catch (...) {
    return FailWith(MLAP_OUT_OF_MEMORY, "");
  }
}

}  // namespace mlap

#endif  // MLAP_API_API_FUNCTION_H_
