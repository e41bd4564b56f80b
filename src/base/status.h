// The outcome of an internal operation: a code and, on failure, a text fit for the user.
#ifndef MLAP_BASE_STATUS_H_
#define MLAP_BASE_STATUS_H_

#include <string>
#include <utility>

namespace mlap {

enum class StatusCode { kOk, kInvalidArgument, kIndexOutOfRange, kUnsupported };

class Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string text) : code_(code), text_(std::move(text)) {}

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& text() const { return text_; }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string text_;
};

}  // namespace mlap

#endif  // MLAP_BASE_STATUS_H_
