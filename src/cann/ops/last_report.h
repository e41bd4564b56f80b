// The last operator of each stream, for mlap_cann_last_report.
#ifndef MLAP_CANN_OPS_LAST_REPORT_H_
#define MLAP_CANN_OPS_LAST_REPORT_H_

#include "acl/acl_base.h"
#include "mlaprolog/cann_report.h"

namespace mlap::cann {

// Remembers `report` as the last of `stream`. The oldest stream is forgotten when there are very many.
void StoreReport(aclrtStream stream, const mlap_cann_report& report);

}  // namespace mlap::cann

#endif  // MLAP_CANN_OPS_LAST_REPORT_H_
