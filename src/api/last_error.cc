#include "api/last_error.h"

namespace mlap {
namespace {

thread_local std::string last_error;

}  // namespace

mlap_status FailWith(mlap_status status, const std::string& text) noexcept {
  try {
    last_error = text;
  } catch (...) {
    last_error.clear();
  }
  return status;
}

mlap_status ToApiStatus(const Status& status) noexcept {
  switch (status.code()) {
    case StatusCode::kOk:
      return MLAP_OK;
    case StatusCode::kInvalidArgument:
      return FailWith(MLAP_INVALID_ARGUMENT, status.text());
    case StatusCode::kIndexOutOfRange:
      return FailWith(MLAP_INDEX_OUT_OF_RANGE, status.text());
    case StatusCode::kUnsupported:
      return FailWith(MLAP_UNSUPPORTED, status.text());
  }
  return MLAP_INVALID_ARGUMENT;
}

const char* LastErrorText() noexcept { return last_error.c_str(); }

}  // namespace mlap
