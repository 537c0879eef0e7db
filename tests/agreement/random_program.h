// Seeded random programs of each family, with sizes and types, and inputs for them.
#ifndef TILEWRIGHT_TESTS_AGREEMENT_RANDOM_PROGRAM_H_
#define TILEWRIGHT_TESTS_AGREEMENT_RANDOM_PROGRAM_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "schedule/workload.h"

namespace tilewright {

struct RandomProgram {
  std::string expression;
  WorkloadOptions options;
};

// Each is a pure function of the seed.
RandomProgram RandomPointwise(uint64_t seed);
RandomProgram RandomRowReduction(uint64_t seed);
RandomProgram RandomContraction(uint64_t seed);

// One buffer per parameter, of normal numbers (small integers for integer types), stored in the
// parameter's type and layout. Elements between strides are NaN patterns.
std::vector<std::vector<char>> RandomInputs(const Workload& workload, const Sizes& sizes,
                                            uint64_t seed);

}  // namespace tilewright

#endif  // TILEWRIGHT_TESTS_AGREEMENT_RANDOM_PROGRAM_H_
