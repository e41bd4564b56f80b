#include <mlaprolog/mlaprolog.h>

#include <iostream>
#include <string>

int main() {
  const std::string expected = std::to_string(MLAP_VERSION_MAJOR) + "." + std::to_string(MLAP_VERSION_MINOR) + "." +
                               std::to_string(MLAP_VERSION_PATCH);
  int num_threads = 0;
  if (mlap_num_threads(&num_threads) != MLAP_OK || num_threads < 1) {
    std::cout << mlap_last_error() << "\n";
    return 1;
  }
  std::cout << "library " << mlap_version_string() << ", header " << expected << "\n";
  return expected == mlap_version_string() ? 0 : 1;
}
