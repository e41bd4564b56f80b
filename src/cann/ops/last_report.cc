#include "cann/ops/last_report.h"

#include <list>
#include <mutex>
#include <utility>

#include "acl/acl_rt.h"
#include "cann/runtime/recent_error.h"

namespace mlap::cann {
namespace {

constexpr size_t kMostStreams = 4096;

struct Reports {
  std::mutex mutex;
  std::list<std::pair<aclrtStream, mlap_cann_report>> newest_first;
};

Reports& TheReports() {
  static Reports* const kReports = new Reports;
  return *kReports;
}

}  // namespace

void StoreReport(aclrtStream stream, const mlap_cann_report& report) {
  Reports& reports = TheReports();
  std::lock_guard<std::mutex> lock(reports.mutex);
  auto& list = reports.newest_first;
  for (auto it = list.begin(); it != list.end(); ++it) {
    if (it->first != stream) continue;
    it->second = report;
    list.splice(list.begin(), list, it);
    return;
  }
  list.emplace_front(stream, report);
  if (list.size() > kMostStreams) list.pop_back();
}

}  // namespace mlap::cann

extern "C" int mlap_cann_last_report(void* stream, mlap_cann_report* report) {
  using mlap::cann::Fail;
  constexpr const char* kFunction = "mlap_cann_last_report";
  return mlap::cann::Guarded(kFunction, [&]() -> int {
    if (report == nullptr || report->struct_size != sizeof(mlap_cann_report)) {
      return Fail(ACL_ERROR_INVALID_PARAM,
                  mlap::cann::RefusalText(kFunction, "report", "a struct with struct_size set to its size",
                                          report == nullptr ? "null" : "another struct_size", "set struct_size"));
    }
    if (stream == nullptr) {
      const aclError code = aclrtCtxGetCurrentDefaultStream(&stream);
      if (code != ACL_SUCCESS) return code;
    }
    // Refuses what is no live stream of the thread's context.
    aclrtStreamStatus status;
    const aclError code = aclrtStreamQuery(stream, &status);
    if (code != ACL_SUCCESS) return code;
    auto& reports = mlap::cann::TheReports();
    std::lock_guard<std::mutex> lock(reports.mutex);
    for (const auto& [owner, stored] : reports.newest_first) {
      if (owner != stream) continue;
      *report = stored;
      return ACL_SUCCESS;
    }
    return Fail(ACL_ERROR_RT_DRV_INTERNAL_ERROR,
                mlap::cann::RefusalText(kFunction, "stream", "a stream on which an operator has finished", "none",
                                        "run an operator and synchronise the stream first"));
  });
}
