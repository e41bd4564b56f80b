#include "machine_facts.h"

#include <fmt/format.h>
#include <mlaprolog/mlaprolog.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sstream>
#include <string_view>

#include "tool_error.h"

namespace mlap::bench {
namespace {

constexpr size_t kAssumedCacheBytes = size_t{64} << 20;

std::string LineOf(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The number behind `key` in a file of "Key:   123 kB" lines, in bytes.
double KibibytesOf(const char* path, std::string_view key) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with(key)) return std::strtod(line.c_str() + key.size(), nullptr) * 1024.0;
  }
  return 0.0;
}

size_t SysfsCacheBytes() {
  size_t largest = 0;
  for (int index = 0; index < 8; ++index) {
    const std::string text = LineOf(fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/size", index).c_str());
    char* unit = nullptr;
    size_t bytes = std::strtoull(text.c_str(), &unit, 10);
    if (*unit == 'K') bytes <<= 10;
    if (*unit == 'M') bytes <<= 20;
    largest = std::max(largest, bytes);
  }
  return largest;
}

void AskCache(MachineFacts* facts) {
  facts->cache_source = "as reported by the kernel";
  facts->cache_bytes = SysfsCacheBytes();
#ifdef _SC_LEVEL3_CACHE_SIZE
  const long level3 = sysconf(_SC_LEVEL3_CACHE_SIZE);
  if (level3 > 0) facts->cache_bytes = std::max(facts->cache_bytes, static_cast<size_t>(level3));
#endif
  if (facts->cache_bytes == 0) {
    facts->cache_bytes = kAssumedCacheBytes;
    facts->cache_source = "assumed, the system does not say";
  }
}

std::string InterestingFlags() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  std::string found;
  while (std::getline(file, line)) {
    if (!line.starts_with("flags") && !line.starts_with("Features")) continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    std::string word;
    while (words >> word) {
      for (const char* prefix : {"avx", "fma", "amx", "asimd", "sve", "bf16", "i8mm"}) {
        if (!word.starts_with(prefix)) continue;
        found += (found.empty() ? "" : " ") + word;
        break;
      }
    }
    break;
  }
  return found;
}

int CpusOfProcess() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 0;
}

std::string Today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%d", &parts);
  return text;
}

}  // namespace

MachineFacts AskMachine() {
  MachineFacts facts;
  const char* isa = nullptr;
  if (mlap_chosen_isa(&isa) != MLAP_OK) tools::Fail("{}", mlap_last_error());
  if (mlap_num_threads(&facts.num_threads) != MLAP_OK) tools::Fail("{}", mlap_last_error());
  facts.cpu = mlap_cpu_name();
  facts.isa = isa;
  facts.flags = InterestingFlags();
  facts.num_cpus = CpusOfProcess();
  AskCache(&facts);
  facts.memory_bytes = KibibytesOf("/proc/meminfo", "MemTotal:");
  facts.huge_pages = LineOf("/sys/kernel/mm/transparent_hugepage/enabled");
  utsname system = {};
  if (uname(&system) == 0) facts.kernel = fmt::format("{} {}", system.sysname, system.release);
#if defined(__clang__)
  facts.compiler = "clang " __clang_version__;
#else
  facts.compiler = "gcc " __VERSION__;
#endif
  facts.date = Today();
  double load = 0.0;
  if (getloadavg(&load, 1) == 1) facts.load = load;
  return facts;
}

MemoryUse ReadMemoryUse() {
  MemoryUse use;
  use.resident = KibibytesOf("/proc/self/status", "VmRSS:");
  use.peak = KibibytesOf("/proc/self/status", "VmHWM:");
  use.huge = KibibytesOf("/proc/self/smaps_rollup", "AnonHugePages:");
  return use;
}

bool ResetPeakMemory() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5";
  file.flush();
  return file.good();
}

}  // namespace mlap::bench
