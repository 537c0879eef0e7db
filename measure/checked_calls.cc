#include "measure/checked_calls.h"

#include <atomic>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "measure/frames.h"
#include "measure/runner_session.h"

namespace tilewright {
namespace {

// The first byte at which two buffers of one output differ, gaps aside; -1: none.
int64_t FirstDifference(const OutputLayout& layout, const std::byte* a, const std::byte* b,
                        LaunchPool& pool) {
  const int bytes = Info(layout.type).bytes;
  if (layout.Dense()) {
    const int64_t total = layout.elements() * bytes;
    std::atomic<bool> differ{false};
    pool.ForRanges(total, [&](int64_t begin, int64_t end) {
      if (memcmp(a + begin, b + begin, end - begin) != 0) differ = true;
    });
    if (!differ) return -1;
    for (int64_t i = 0; i < total; ++i) {
      if (a[i] != b[i]) return i;
    }
    return -1;
  }
  for (int64_t i = 0; i < layout.elements(); ++i) {
    const int64_t at = layout.Offset(i) * bytes;
    if (memcmp(a + at, b + at, bytes) != 0) return at;
  }
  return -1;
}

}  // namespace

std::string CheckEvidence::ToJson() const {
  return absl::StrFormat("{\"calls\":%d,\"elements\":%d,\"worst_ratio\":%.4g}", calls, elements,
                         worst_ratio);
}

std::optional<CandidateFailure> CheckedCalls::Call(int set, unsigned char poison, const char* why,
                                                   double* seconds) {
  before_call_(set, why);
  shape_.sets->AllowOutputsOf(set);
  shape_.sets->Poison(set, poison, pool_);
  const double start = MonotonicSeconds();
  caller_.Call(set);
  if (seconds != nullptr) *seconds = MonotonicSeconds() - start;
  if (std::optional<CandidateFailure> failure = CheckBands(set, poison)) return failure;
  return CompareOutputs(set);
}

std::optional<CandidateFailure> CheckedCalls::CallTwice(int set, const char* why,
                                                        double hopeless_seconds, double* seconds) {
  double first = 0;
  double second = 0;
  caller_.FillWorkspace(kNanPoison);
  std::optional<CandidateFailure> failure = Call(set, kNanPoison, why, &first);
  *seconds = first;
  if (failure && failure->kind != FailureKind::kWrongOutput) return failure;
  if (!failure && first > hopeless_seconds) return std::nullopt;
  std::vector<std::vector<std::byte>>& kept = shape_.kept;
  kept.resize(shape_.sets->outputs());
  for (int o = 0; o < shape_.sets->outputs(); ++o) {
    const GuardedMemory::Buffer& buffer = shape_.sets->Output(set, o);
    kept[o].resize(buffer.bytes);
    pool_.ForRanges(buffer.bytes, [&](int64_t begin, int64_t end) {
      memcpy(kept[o].data() + begin, buffer.data + begin, end - begin);
    });
  }
  caller_.FillWorkspace(kFinitePoison);
  std::optional<CandidateFailure> second_failure = Call(set, kFinitePoison, why, &second);
  if (second_failure && second_failure->kind != FailureKind::kWrongOutput) return second_failure;
  *seconds = std::min(first, second);
  for (int o = 0; o < shape_.sets->outputs(); ++o) {
    const GuardedMemory::Buffer& buffer = shape_.sets->Output(set, o);
    const OutputLayout& layout = shape_.expected[0][o]->layout();
    const int64_t at = FirstDifference(layout, kept[o].data(), buffer.data, pool_);
    if (at < 0) continue;
    const bool unwritten =
        kept[o][at] == std::byte{kNanPoison} && buffer.data[at] == std::byte{kFinitePoison};
    if (unwritten) {
      return CandidateFailure{
          FailureKind::kWrongOutput,
          absl::StrCat("byte ", at, " of output ", layout.name, " is never written")};
    }
    return CandidateFailure{FailureKind::kNondeterministic,
                            absl::StrCat("two calls on the same inputs differ from byte ", at,
                                         " of output ", layout.name, " on")};
  }
  return failure ? failure : second_failure;
}

std::optional<CandidateFailure> CheckedCalls::CheckBands(int set, unsigned char poison) {
  int64_t offset = 0;
  const int output = shape_.sets->FindBandDamage(set, &offset);
  if (output >= 0) {
    shape_.sets->RepairBands(set);
    return CandidateFailure{
        FailureKind::kOutOfBounds,
        absl::StrCat("wrote to byte ", offset, " of output ", output, ", which has ",
                     shape_.sets->Output(set, output).bytes, " B")};
  }
  if (const int64_t damage = caller_.FindWorkspaceBandDamage(); damage != 0) {
    return CandidateFailure{FailureKind::kOutOfBounds,
                            absl::StrCat("wrote to byte ", damage, " of the workspace, which has ",
                                         caller_.kernel().workspace.bytes, " B")};
  }
  for (int o = 0; o < shape_.sets->outputs(); ++o) {
    const OutputLayout& layout = shape_.expected[0][o]->layout();
    const int64_t gap = FindGapDamage(layout, shape_.sets->Output(set, o).data, poison);
    if (gap < 0) continue;
    return CandidateFailure{
        FailureKind::kOutOfBounds,
        absl::StrCat("wrote to byte ", gap, " of output ", layout.name, ", between its rows")};
  }
  return std::nullopt;
}

std::optional<CandidateFailure> CheckedCalls::CompareOutputs(int set) {
  const Expected& expected = shape_.expected[shape_.sets->ContentOf(set)];
  ++evidence_.calls;
  for (int o = 0; o < shape_.sets->outputs(); ++o) {
    const CheckResult result = expected[o]->Check(shape_.sets->Output(set, o).data, pool_);
    evidence_.elements += result.elements;
    evidence_.worst_ratio = std::max(evidence_.worst_ratio, result.worst_ratio);
    if (result.wrong > 0) {
      return CandidateFailure{FailureKind::kWrongOutput,
                              absl::StrCat(result.text, " (set ", set, ")")};
    }
  }
  return std::nullopt;
}

}  // namespace tilewright
