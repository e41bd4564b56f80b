#include "progress_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace mlap::tools {
namespace {

constexpr std::chrono::milliseconds kPatience(2000);
constexpr std::chrono::milliseconds kTerminalInterval(200);

}  // namespace

ProgressLine::ProgressLine(std::string label)
    : label_(std::move(label)),
      is_terminal_(isatty(STDERR_FILENO) == 1),
      start_(Clock::now()),
      next_(start_ + kPatience) {}

ProgressLine::~ProgressLine() {
  if (is_shown_ && is_terminal_) std::fputs("\r\x1b[K", stderr);
}

void ProgressLine::Update(double done) {
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  next_ = now + (is_terminal_ ? kTerminalInterval : kPatience);
  is_shown_ = true;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  fmt::print(stderr, "{}{}: {:3.0f} %, {:.0f} s{}", is_terminal_ ? "\r\x1b[K" : "", label_,
             100.0 * std::clamp(done, 0.0, 1.0), seconds, is_terminal_ ? "" : "\n");
  std::fflush(stderr);
}

}  // namespace mlap::tools
