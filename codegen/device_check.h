// The output check as kernels, for devices whose memory the host does not read at memory speed: one
// kernel per output with exactly the rules of measure/check.h, one that compares bytes (guard
// bands, inputs, two results), and one that reads the clocks.
//
// They are called by number, with parameters of their own instead of a recipe's arguments. All are
// launched with kCheckThreads threads a block and any number of blocks; all parameters are 64 bits.
#ifndef TILEWRIGHT_CODEGEN_DEVICE_CHECK_H_
#define TILEWRIGHT_CODEGEN_DEVICE_CHECK_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "codegen/kernel.h"
#include "schedule/target.h"
#include "schedule/workload.h"

namespace tilewright {

inline constexpr int kCheckThreads = 256;

// Launch 0: compare(tasks, firsts). Block row y (gridDim.y rows) compares the bytes of tasks[y] and
// lowers firsts[y] to the offset of the first that differs.
struct CompareTask {
  uint64_t a;  // device addresses
  uint64_t b;
  uint64_t bytes;
};
inline constexpr int kCompareLaunch = 0;
inline constexpr uint64_t kNoDifference = ~uint64_t{0};  // what firsts[y] is before

// Launch 1: clocks(marks). One thread of each block writes marks[%smid].
struct ClockMark {
  uint64_t globaltimer_ns;
  uint64_t cycles;  // of this SM
};
inline constexpr int kClockLaunch = 1;

// Launch 2 + o: check(output, reference, bound, dimensions, elements, result) for output o of the
// workload. `reference` and `bound` are dense row-major f64, `dimensions` the output's shape and
// then its strides in elements (rank numbers each).
struct DeviceCheckResult {
  uint64_t wrong = 0;
  uint64_t first_wrong = ~uint64_t{0};      // row-major number
  uint64_t worst_ratio_bits = 0;            // of a double >= 0: such doubles order as integers
  uint64_t first_unbounded = ~uint64_t{0};  // element whose bound is infinite or NaN
};
inline constexpr int kFirstCheckLaunch = 2;

// Errors: as WriteKernel. FailedPrecondition: the target's backend is not a GPU's.
absl::StatusOr<Kernel> WriteDeviceCheck(const Workload& workload, const Target& target);

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_DEVICE_CHECK_H_
