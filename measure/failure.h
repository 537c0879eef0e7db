// Why a candidate has no time: a kind and a text, stored in its trial. A failure is data, not an
// error of the tuner; there are no sentinel times. The one list is in failure.cc.
#ifndef TILEWRIGHT_MEASURE_FAILURE_H_
#define TILEWRIGHT_MEASURE_FAILURE_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace tilewright {

enum class FailureKind {
  kBuildFailed,
  kBuildTimeout,
  kResourceLimit,
  kLaunchFailed,
  kRunTimeout,
  kCrashed,
  kOutOfBounds,
  kWrongOutput,
  kInputModified,
  kNondeterministic,
  kImpossibleTime,
  kOutOfMemory,
  kDeviceLost,
  kWorkerLost,
};

struct FailureKindInfo {
  FailureKind kind;
  std::string_view name;   // "out of bounds": in records, on the wire, in reports
  bool trains_classifier;  // false: says nothing about the candidate
  bool retried;  // an infrastructure failure: the candidate is leased again, at most twice
};
const FailureKindInfo& Info(FailureKind kind);
absl::Span<const FailureKindInfo> AllFailureKinds();
absl::StatusOr<FailureKind> ParseFailureKind(std::string_view name);

struct CandidateFailure {
  FailureKind kind;
  std::string text;  // what, where, numbers
};

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_FAILURE_H_
