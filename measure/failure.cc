#include "measure/failure.h"

#include "absl/strings/str_cat.h"

namespace tilewright {
namespace {

// The only list of failure kinds, in the order of the enum.
constexpr FailureKindInfo kKinds[] = {
    // kind, name, trains the classifier, leased again
    {FailureKind::kBuildFailed, "build failed", true, false},
    {FailureKind::kBuildTimeout, "build timeout", false, false},
    {FailureKind::kResourceLimit, "resource limit", true, false},
    {FailureKind::kLaunchFailed, "launch failed", true, false},
    {FailureKind::kRunTimeout, "run timeout", true, false},
    {FailureKind::kCrashed, "crashed", true, false},
    {FailureKind::kOutOfBounds, "out of bounds", true, false},
    {FailureKind::kWrongOutput, "wrong output", true, false},
    {FailureKind::kInputModified, "input modified", true, false},
    {FailureKind::kNondeterministic, "nondeterministic", true, false},
    {FailureKind::kImpossibleTime, "impossible time", true, false},
    {FailureKind::kOutOfMemory, "out of memory", true, false},
    {FailureKind::kDeviceLost, "device lost", false, true},
    {FailureKind::kWorkerLost, "worker lost", false, true},
};

}  // namespace

const FailureKindInfo& Info(FailureKind kind) { return kKinds[static_cast<int>(kind)]; }

absl::Span<const FailureKindInfo> AllFailureKinds() { return kKinds; }

absl::StatusOr<FailureKind> ParseFailureKind(std::string_view name) {
  std::string known;
  for (const FailureKindInfo& info : kKinds) {
    if (info.name == name) return info.kind;
    absl::StrAppend(&known, known.empty() ? "" : ", ", std::string(info.name));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown failure kind '", std::string(name), "'; known kinds: ", known));
}

}  // namespace tilewright
