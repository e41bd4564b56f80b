// The angles of rotary positions, their sines and cosines: the same bits on every machine.
#ifndef MLAP_API_ROPE_ANGLES_H_
#define MLAP_API_ROPE_ANGLES_H_

#include <cstdint>
#include <vector>

namespace mlap {

// YaRN: frequencies slower than beta_slow turns in the original context are stretched by the factor, those faster than
// beta_fast are kept, and a ramp lies between. A factor of 1 changes nothing.
struct Yarn {
  double factor = 1.0;
  double original_context = 4096.0;
  double beta_fast = 32.0;
  double beta_slow = 1.0;
};

// The Dr / 2 angular frequencies theta^(-2 i / Dr), stretched. theta is above 1.
std::vector<double> RopeFrequencies(int64_t rope, double theta, const Yarn& yarn);

struct Rotation {
  float cos;
  float sin;
};

// For angles up to about 1e9.
Rotation RotationOf(double angle);

}  // namespace mlap

#endif  // MLAP_API_ROPE_ANGLES_H_
