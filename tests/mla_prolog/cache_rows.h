// A call's caches as rows, one for each slot, whatever the byte order.
#ifndef MLAP_TESTS_MLA_PROLOG_CACHE_ROWS_H_
#define MLAP_TESTS_MLA_PROLOG_CACHE_ROWS_H_

#include <cstdint>
#include <vector>

#include "prolog_fixture.h"

namespace mlap::prolog_test {

// The caches that have elements.
std::vector<Param> CachesOf(const Config& config);

// One row per slot, from the elements of a cache in logical order.
std::vector<std::vector<uint8_t>> Rows(const PrologCall& call, Param param);

}  // namespace mlap::prolog_test

#endif  // MLAP_TESTS_MLA_PROLOG_CACHE_ROWS_H_
