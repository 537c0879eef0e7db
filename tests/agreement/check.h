// Runs a kernel, the reference kernel and the interpreter on the same inputs and compares them by
// the rule of DESIGN.md 6.
#ifndef TILEWRIGHT_TESTS_AGREEMENT_CHECK_H_
#define TILEWRIGHT_TESTS_AGREEMENT_CHECK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/writer.h"
#include "schedule/workload.h"
#include "tests/codegen/host_loader.h"

namespace tilewright {

// The interpreter's value and the reference kernel's bound at every point of every output, by
// output then row-major position.
struct Expected {
  Sizes sizes;
  std::vector<std::vector<char>> inputs;
  std::vector<std::vector<double>> values;
  std::vector<std::vector<double>> bounds;
};

// Fails the test where the reference kernel's value is not within its own bound of the
// interpreter's.
Expected MakeExpected(const Workload& workload, const Target& target, const Sizes& sizes,
                      uint64_t seed);

// The first element that breaks the rule, or that was written outside the output; empty if all is
// well.
std::string Disagreement(const Workload& workload, const Kernel& kernel, const Expected& expected);
// The same for a kernel that is loaded, of whatever backend.
std::string Disagreement(const Workload& workload, LoadedKernel& kernel, const Expected& expected,
                         LoadedKernel::Order order);

// The unit roundoff of what the workload's sums accumulate in.
double AccumulatorRoundoff(const Workload& workload);

// |out - round(ref)| <= 2E + u |ref| + the smallest subnormal, with the rules for NaN, infinities,
// overflow and integers.
bool IsWithinBound(ElementType type, double out, double reference, double bound);

}  // namespace tilewright

#endif  // TILEWRIGHT_TESTS_AGREEMENT_CHECK_H_
