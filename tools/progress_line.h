// Progress of work that takes longer than two seconds, on stderr.
#ifndef MLAP_TOOLS_PROGRESS_LINE_H_
#define MLAP_TOOLS_PROGRESS_LINE_H_

#include <chrono>
#include <string>

namespace mlap::tools {

// On a terminal one line that is rewritten, and cleared at the end; elsewhere a line every two seconds. Nothing at all
// for shorter work. For one thread.
class ProgressLine {
 public:
  explicit ProgressLine(std::string label);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // `done` in [0, 1].
  void Update(double done);

  // For callbacks of C interfaces; `line` is a ProgressLine.
  static void UpdateCallback(void* line, double done) { static_cast<ProgressLine*>(line)->Update(done); }

 private:
  using Clock = std::chrono::steady_clock;

  std::string label_;
  bool is_terminal_;
  bool is_shown_ = false;
  Clock::time_point start_;
  Clock::time_point next_;
};

}  // namespace mlap::tools

#endif  // MLAP_TOOLS_PROGRESS_LINE_H_
