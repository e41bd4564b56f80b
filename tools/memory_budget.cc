#include "memory_budget.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

#include "tool_error.h"

namespace mlap::tools {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

// The first number of a file, infinity if there is none ("max").
double NumberFromFile(const char* path) {
  std::ifstream file(path);
  double value = 0.0;
  return file >> value ? value : kUnlimited;
}

double SystemAvailableBytes() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  double kibibytes = 0.0;
  std::string unit;
  while (file >> key >> kibibytes) {
    if (key == "MemAvailable:") return kibibytes * 1024.0;
    std::getline(file, unit);
  }
  return kUnlimited;
}

// Of version 2, then version 1; inside a container the root of the hierarchy is the container's group. What the group
// uses already is mostly file cache, which gives way, so the limit is what counts.
double ControlGroupLimitBytes() {
  return std::min(NumberFromFile("/sys/fs/cgroup/memory.max"),
                  NumberFromFile("/sys/fs/cgroup/memory/memory.limit_in_bytes"));
}

double SumBytes(const std::vector<TensorSpec>& specs) {
  double bytes = 0.0;
  for (const TensorSpec& spec : specs) {
    bytes += ApproximateBytes(spec.dtype, spec.role == TensorRole::kNzWeight
                                              ? NzShape(spec.shape[0], spec.shape[1], spec.dtype)
                                              : spec.shape);
  }
  return bytes;
}

}  // namespace

double AvailableBytes() { return std::min(SystemAvailableBytes(), ControlGroupLimitBytes()); }

double InputBytes(const CaseShape& shape) { return SumBytes(InputSpecs(shape)); }

double OutputBytes(const CaseShape& shape) { return SumBytes(OutputSpecs(shape)); }

void RequireMemory(double bytes, std::string_view what) {
  const double available = AvailableBytes();
  if (bytes <= available) return;
  Fail("{} needs about {:.3g} GB of memory, and {:.3g} GB are available: choose smaller sizes", what, bytes / 1e9,
       available / 1e9);
}

}  // namespace mlap::tools
