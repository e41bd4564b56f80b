// From the public argument struct to the engine's arguments.
#ifndef MLAP_API_ARGS_CHECK_H_
#define MLAP_API_ARGS_CHECK_H_

#include "base/prolog_args.h"
#include "base/status.h"
#include "mlaprolog/mlaprolog.h"

namespace mlap {

// Checks presence, types, layouts, ranks, shapes, strides and sizes of every tensor of the call and of the wanted
// intermediates; the first fault is described in the status. On success *out refers to the caller's memory.
Status ToPrologArgs(const mlap_prolog_args& args, PrologArgs* out);

}  // namespace mlap

#endif  // MLAP_API_ARGS_CHECK_H_
