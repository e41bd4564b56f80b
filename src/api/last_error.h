// The text behind mlap_last_error.
#ifndef MLAP_API_LAST_ERROR_H_
#define MLAP_API_LAST_ERROR_H_

#include <string>

#include "base/status.h"
#include "mlaprolog/mlaprolog.h"

namespace mlap {

// Remembers `text` for the calling thread and returns `status`. Without memory the text is lost, the status is not.
mlap_status FailWith(mlap_status status, const std::string& text) noexcept;

// The same for an internal status; MLAP_OK for one that is ok.
mlap_status ToApiStatus(const Status& status) noexcept;

const char* LastErrorText() noexcept;

}  // namespace mlap

#endif  // MLAP_API_LAST_ERROR_H_
