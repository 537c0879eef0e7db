// A KernelTrace reads when kernels started and ended on the GPU, from CUPTI's activity records
// (libcupti.so.13, found at run time). One per process, started before the first module is loaded
// (CUPTI instruments code as it is loaded) and kept on for the process's life: switching it on and
// off loses the first kernels after each switch.
//
//   trace->…                          // launch a graph, synchronise its stream
//   trace->Take(trace->last_launch()) // when its first kernel started and its last ended
//
// One thread launches and asks; CUPTI's own thread delivers.
#ifndef TILEWRIGHT_MEASURE_KERNEL_TRACE_H_
#define TILEWRIGHT_MEASURE_KERNEL_TRACE_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"

namespace tilewright {

// The kernels of one launch of a graph. Times are CLOCK_MONOTONIC.
struct KernelSpan {
  int kernels = 0;
  uint64_t start_ns = 0;  // of the first
  uint64_t end_ns = 0;    // of the last
  uint64_t busy_ns = 0;   // sum of (end - start) over the kernels
};

class KernelTrace {
 public:
  // Whether CUPTI is here and of the version whose records this program can read, without starting
  // it. Unavailable says what is missing.
  static absl::Status Probe();
  // Unavailable: Probe's reasons, or another tool holds the one subscription of this process.
  // Then times come from events.
  static absl::StatusOr<std::unique_ptr<KernelTrace>> Start();
  virtual ~KernelTrace() = default;

  // Identifies the last graph launch of this process.
  virtual uint32_t last_launch() const = 0;
  // Precondition: the launch's stream has been synchronised. `kernels`: how many the launch has;
  // 0: unknown.
  // Unavailable: records are missing or without time stamps.
  virtual absl::StatusOr<KernelSpan> Take(uint32_t launch, int kernels) = 0;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_KERNEL_TRACE_H_
