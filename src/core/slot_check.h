// Checks what tells a call where its cache rows go, before anything is written.
#ifndef MLAP_CORE_SLOT_CHECK_H_
#define MLAP_CORE_SLOT_CHECK_H_

#include "base/prolog_args.h"
#include "base/status.h"

namespace mlap {

// Checks cacheIndex and actualSeqLen against each other, T and the caches' capacity. Fails with kIndexOutOfRange and a
// text that names the token or the sequence, the value found and what would fit. Empty caches make everything legal, as
// nothing is read then.
Status CheckSlots(const PrologArgs& args);

}  // namespace mlap

#endif  // MLAP_CORE_SLOT_CHECK_H_
