#include "cann/ops/verbose_line.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace mlap::cann {
namespace {

std::string Milliseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.4g ms", seconds * 1e3);
  return text;
}

}  // namespace

bool IsVerbose() {
  static const bool kIsVerbose = [] {
    const char* text = std::getenv("MLAP_VERBOSE");
    return text != nullptr && std::strcmp(text, "1") == 0;
  }();
  return kIsVerbose;
}

std::string VerboseLine(const mlap_cann_report& report, const PrologPlan& plan) {
  struct Size {
    const char* symbol;
    int64_t value;
  };
  std::string line = std::string("mlaprolog: ") + report.op + ", " + report.scenario + ", " + report.isa + ", " +
                     std::to_string(report.num_threads) + " threads,";
  for (const Size& size :
       {Size{"T", report.tokens}, Size{"He", report.hidden}, Size{"Hcq", report.q_rank}, Size{"N", report.heads},
        Size{"D", report.nope}, Size{"Dr", report.rope}, Size{"Hckv", report.kv_rank}}) {
    line += std::string(" ") + size.symbol + " " + std::to_string(size.value);
  }
  line += ", blocks of " + std::to_string(plan.token_block) + " tokens, tasks of " + std::to_string(plan.column_group) +
          " columns, " +
          (plan.splits_heads ? "heads split by " + std::to_string(plan.head_columns) + " columns"
                             : "heads of " + std::to_string(plan.head_tokens) + " tokens") +
          ", " + report.gemm_kernel;
  for (int i = 0; i < report.num_stages; ++i) {
    line += std::string(", ") + report.stage_names[i] + " " + Milliseconds(report.stage_seconds[i]);
  }
  return line + ", total " + Milliseconds(report.seconds) + "\n";
}

void PrintVerboseLine(const std::string& line) { std::fwrite(line.data(), 1, line.size(), stderr); }

}  // namespace mlap::cann
