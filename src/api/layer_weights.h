// The weights of one layer: what an mlap_weights stands for.
#ifndef MLAP_API_LAYER_WEIGHTS_H_
#define MLAP_API_LAYER_WEIGHTS_H_

#include <memory>

#include "api/handle_registry.h"
#include "api/page_memory.h"
#include "base/prolog_args.h"
#include "base/status.h"
#include "mlaprolog/mlaprolog.h"

namespace mlap {

struct LayerWeights {
  // The weights' part of a call: sizes (no tokens), what is quantised, and every pointer to weights, gammas and scales.
  PrologArgs args;
  mlap_ownership ownership = MLAP_COPY;
  PageMemory memory;  // of copies
};

// Checks the tensors and copies or borrows them. Throws std::bad_alloc.
Status MakeLayerWeights(const mlap_weights_args& args, LayerWeights* weights);

using WeightsTable = HandleTable<mlap_weights, LayerWeights>;
WeightsTable& ProcessWeights();

// MLAP_INVALID_ARGUMENT with a text about a handle that is none of them.
mlap_status FailUnknownWeights(const char* function, const void* handle);

}  // namespace mlap

#endif  // MLAP_API_LAYER_WEIGHTS_H_
