// Checked calls on a GPU: what CheckedCalls is on a CPU. Everything that belongs to a round of
// checks is enqueued at once (poison, call, comparison, next set) and read after one
// synchronisation, so that a round costs little more than the kernels in it.
#ifndef TILEWRIGHT_MEASURE_DEVICE_CHECKED_CALLS_H_
#define TILEWRIGHT_MEASURE_DEVICE_CHECKED_CALLS_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "measure/call_graph.h"
#include "measure/checked_calls.h"
#include "measure/cuda_kernel.h"
#include "measure/device_buffer_sets.h"
#include "measure/device_checker.h"
#include "measure/failure.h"

namespace tilewright {

// Buffers at one choice of sizes, with their references.
struct DeviceShape {
  std::unique_ptr<DeviceBufferSets> sets;
  std::vector<std::vector<DeviceReference>> references;  // by content, then output
  std::vector<int> layouts;                              // by output, of the session's checker
  std::vector<DeviceMemory> kept;                        // a copy of one set's outputs, by output
};

class DeviceCheckedCalls {
 public:
  // A failure of the candidate is a value; a Status is what the driver said.
  using Verdict = absl::StatusOr<std::optional<CandidateFailure>>;

  // Precondition: the kernel is bound to the shape's sets. All are borrowed.
  DeviceCheckedCalls(CudaContext& context, DeviceChecker& checker, DeviceShape& shape,
                     CudaKernel& kernel, CheckEvidence* evidence)
      : context_(context),
        checker_(checker),
        shape_(shape),
        kernel_(kernel),
        evidence_(*evidence) {}

  // Two checked calls on one set with different poison and different garbage in the workspace: the
  // results must be equal bit by bit. `seconds` receives the shorter time, by events. If the first
  // call is right and takes longer than `hopeless_seconds`, it is the only one.
  Verdict CallTwice(int set, double hopeless_seconds, double* seconds);
  // One checked call on each set; then the guard bands of all sets, and the inputs of `touched`.
  // What a candidate damaged is repaired.
  Verdict CallEach(absl::Span<const int> sets, unsigned char poison, absl::Span<const int> touched);
  // For calls that are timed, and so made by a graph: poisons the outputs of `sets` before it, and
  // compares them after it. Calls that overlap (dependent launch) are checked nowhere else.
  absl::Status PoisonOutputs(absl::Span<const int> sets, unsigned char poison);
  Verdict CheckOutputs(absl::Span<const int> sets);

 private:
  struct Slot {
    int set;
    int output;
    int number;
  };

  absl::Status EnqueueCall(int set, unsigned char poison, EventPair* events);
  absl::Status EnqueueChecks(int set, std::vector<Slot>* slots);
  absl::Status EnqueueWatch(absl::Span<const int> touched);
  // After Finish.
  std::optional<CandidateFailure> JudgeOutputs(absl::Span<const Slot> slots);
  Verdict JudgeWatch();
  // Strided outputs only: the gaps between rows must keep the poison.
  Verdict CheckGaps(int set, unsigned char poison);
  Verdict CompareKept(int set, int first_difference);
  absl::StatusOr<std::vector<std::byte>> Download(CUdeviceptr from, int64_t bytes);

  CudaContext& context_;
  DeviceChecker& checker_;
  DeviceShape& shape_;
  CudaKernel& kernel_;
  CheckEvidence& evidence_;
  int watch_first_ = -1;  // number of the first task
  std::vector<DeviceBufferSets::Watched> watched_;
  int workspace_tasks_ = 0;  // behind them
};

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_DEVICE_CHECKED_CALLS_H_
