#include "cann/runtime/recent_error.h"

#include <cstring>
#include <deque>
#include <exception>
#include <string_view>

namespace mlap::cann {
namespace {

// A program that never asks must not collect texts without end.
constexpr size_t kMaxTexts = 32;

struct ThreadTexts {
  std::deque<std::string> newest_first;
  std::string handed_out;
};

thread_local ThreadTexts* thread_texts = nullptr;
thread_local bool thread_is_ending = false;
thread_local aclError last_runtime_code = 0;

// A program's static destructors run after this thread's objects are gone and may still call the library: from then on
// texts are dropped instead of touching freed memory.
struct ThreadTextsOwner {
  ~ThreadTextsOwner() {
    delete thread_texts;
    thread_texts = nullptr;
    thread_is_ending = true;
  }
};

ThreadTexts* TextsOfThisThread() {
  if (thread_is_ending) return nullptr;
  if (thread_texts == nullptr) {
    static thread_local ThreadTextsOwner owner;
    (void)owner;
    thread_texts = new ThreadTexts;
  }
  return thread_texts;
}

void AddText(std::string text) noexcept {
  try {
    ThreadTexts* const texts = TextsOfThisThread();
    if (texts == nullptr) return;
    texts->newest_first.push_front(std::move(text));
    if (texts->newest_first.size() > kMaxTexts) texts->newest_first.pop_back();
  } catch (...) {
    // Without memory there is no text; the code still reaches the caller.
  }
}

bool StartsWith(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }

bool ReturnsRuntimeCode(const char* function) {
  return StartsWith(function, "aclrt") || StartsWith(function, "aclInit") || StartsWith(function, "aclFinalize");
}

}  // namespace

bool IsRuntimeCode(int code) noexcept {
  const int family = code / 1000;
  return family == 107 || family == 207 || family == 507;
}

aclError Fail(aclError code, std::string text) noexcept {
  if (IsRuntimeCode(code)) last_runtime_code = code;
  AddText(std::move(text));
  return code;
}

aclnnStatus FailOp(aclnnStatus status, std::string text) noexcept {
  AddText(std::move(text));
  return status;
}

std::string RefusalText(const char* function, const char* parameter, const std::string& expected,
                        const std::string& found, const std::string& advice) {
  std::string text = function;
  text += ": ";
  text += parameter;
  text += ": expected " + expected + ", found " + found;
  if (!advice.empty()) text += "; " + advice;
  return text;
}

std::string NullPointerText(const char* function, const char* parameter) {
  return RefusalText(function, parameter, "a pointer", "NULL", "pass one to live memory");
}

const char* TakeRecentTexts() noexcept {
  try {
    ThreadTexts* const texts = TextsOfThisThread();
    if (texts == nullptr || texts->newest_first.empty()) return nullptr;
    std::string joined;
    for (const std::string& text : texts->newest_first) {
      if (!joined.empty()) joined += '\n';
      joined += text;
    }
    texts->handed_out = std::move(joined);
    texts->newest_first.clear();
    return texts->handed_out.c_str();
  } catch (...) {
    return nullptr;
  }
}

aclError PeekLastError() noexcept { return last_runtime_code; }

aclError TakeLastError() noexcept {
  const aclError code = last_runtime_code;
  last_runtime_code = 0;
  return code;
}

int FailWithCurrentException(const char* function) noexcept {
  const bool is_runtime = ReturnsRuntimeCode(function);
  try {
    throw;
  } catch (const std::bad_alloc&) {
    const int code = is_runtime ? ACL_ERROR_RT_MEMORY_ALLOCATION : 361001;
    try {
      return Fail(code, std::string(function) + ": the process is out of memory");
    } catch (...) {
      return code;
    }
  } catch (const std::exception& error) {
    const int code = is_runtime ? ACL_ERROR_INTERNAL_ERROR : 561000;
    try {
      return Fail(code, std::string(function) + ": an error inside the library: " + error.what());
    } catch (...) {
      return code;
    }
  } catch (...) {
    return is_runtime ? ACL_ERROR_INTERNAL_ERROR : 561000;
  }
}

}  // namespace mlap::cann
