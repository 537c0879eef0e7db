// CheckedCalls calls a kernel where everything it does is looked at: outputs poisoned before,
// compared with the reference after, guard bands, gaps, other sets' outputs. Used in a screening's
// warm-up and after timing, and before and after finals.
#ifndef TILEWRIGHT_MEASURE_CHECKED_CALLS_H_
#define TILEWRIGHT_MEASURE_CHECKED_CALLS_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "measure/buffer_sets.h"
#include "measure/failure.h"
#include "measure/kernel_caller.h"
#include "measure/reference.h"

namespace tilewright {

// Buffers at one choice of sizes, with their references.
struct MeasuredShape {
  std::unique_ptr<BufferSets> sets;
  std::vector<Expected> expected;  // by content
  std::vector<std::vector<std::byte>>
      kept;  // a copy of one set's outputs, reused from check to check
};

// What the checks of one kernel have seen so far.
struct CheckEvidence {
  int calls = 0;
  int64_t elements = 0;
  double worst_ratio = 0;  // largest error over allowance
  std::string ToJson() const;
};

class CheckedCalls {
 public:
  // `before_call` is told of each call before it is made: the number of its set, and why it is
  // made.
  using BeforeCall = std::function<void(int set, const char* why)>;

  CheckedCalls(MeasuredShape& shape, KernelCaller& caller, LaunchPool& pool, BeforeCall before_call,
               CheckEvidence* evidence)
      : shape_(shape),
        caller_(caller),
        pool_(pool),
        before_call_(std::move(before_call)),
        evidence_(*evidence) {}

  // One checked call. Precondition: the caller is bound to the shape's sets. `poison` fills the
  // outputs before. Returns the failure; `seconds`, if not null, receives the call's time.
  std::optional<CandidateFailure> Call(int set, unsigned char poison, const char* why,
                                       double* seconds = nullptr);
  // Two checked calls on one set with different poison and different garbage in the workspace: the
  // results must be equal bit by bit. `seconds` receives the shorter time. If the first call is
  // right and takes longer than `hopeless_seconds`, it is the only one.
  std::optional<CandidateFailure> CallTwice(int set, const char* why, double hopeless_seconds,
                                            double* seconds);

 private:
  std::optional<CandidateFailure> CompareOutputs(int set);
  std::optional<CandidateFailure> CheckBands(int set, unsigned char poison);

  MeasuredShape& shape_;
  KernelCaller& caller_;
  LaunchPool& pool_;
  BeforeCall before_call_;
  CheckEvidence& evidence_;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_CHECKED_CALLS_H_
