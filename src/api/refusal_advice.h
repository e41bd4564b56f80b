// What to do about a refused field: the last part of every refusal's text.
#ifndef MLAP_API_REFUSAL_ADVICE_H_
#define MLAP_API_REFUSAL_ADVICE_H_

#include <string>
#include <string_view>

namespace mlap {

// For a tensor the shape and type to pass: "pass (N, D, Hckv), BF16"; for any other field, where it is described.
std::string AdviceFor(std::string_view name);

}  // namespace mlap

#endif  // MLAP_API_REFUSAL_ADVICE_H_
