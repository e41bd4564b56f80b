// The cosine and sine tables of rotary positions, the same bits on every machine.
#ifndef MLAP_TOOLS_ROPE_TABLE_H_
#define MLAP_TOOLS_ROPE_TABLE_H_

#include <cstdint>
#include <vector>

namespace mlap::tools {

// The Dr / 2 angular frequencies theta^(-2 i / Dr). A yarn factor above 1 stretches the slow ones by it, as YaRN does
// for an original context of 4096 positions (beta 32 and 1).
std::vector<double> RopeFrequencies(int64_t rope, double theta, double yarn_factor);

struct Rotation {
  float cos;
  float sin;
};

// For angles up to about 1e9.
Rotation RotationOf(double angle);

}  // namespace mlap::tools

#endif  // MLAP_TOOLS_ROPE_TABLE_H_
