#include "measure/device_checked_calls.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "measure/runner_session.h"

namespace tilewright {
namespace {

// Calls of one round: each leaves a few results in the checker's batch.
constexpr size_t kMostCallsAtOnce = 1024;

}  // namespace

absl::Status DeviceCheckedCalls::EnqueueCall(int set, unsigned char poison, EventPair* events) {
  if (absl::Status status = shape_.sets->Poison(set, poison); !status.ok()) return status;
  if (events == nullptr) return kernel_.Enqueue(set, false);
  absl::Status status = events->RecordStart();
  if (status.ok()) status = kernel_.Enqueue(set, false);
  if (status.ok()) status = events->RecordEnd();
  return status;
}

absl::Status DeviceCheckedCalls::EnqueueChecks(int set, std::vector<Slot>* slots) {
  const std::vector<DeviceReference>& references = shape_.references[shape_.sets->ContentOf(set)];
  for (int o = 0; o < shape_.sets->outputs(); ++o) {
    const absl::StatusOr<int> slot =
        checker_.Check(shape_.layouts[o], shape_.sets->Output(set, o), references[o]);
    if (!slot.ok()) return slot.status();
    slots->push_back({set, o, *slot});
  }
  return absl::OkStatus();
}

std::optional<CandidateFailure> DeviceCheckedCalls::JudgeOutputs(absl::Span<const Slot> slots) {
  for (const Slot& slot : slots) {
    const DeviceCheckResult& result = checker_.result(slot.number);
    if (slot.output == 0) ++evidence_.calls;
    evidence_.elements += checker_.layout(shape_.layouts[slot.output]).elements();
    evidence_.worst_ratio =
        std::max(evidence_.worst_ratio, std::bit_cast<double>(result.worst_ratio_bits));
    if (result.wrong == 0) continue;
    const DeviceReference& reference =
        shape_.references[shape_.sets->ContentOf(slot.set)][slot.output];
    return CandidateFailure{
        FailureKind::kWrongOutput,
        absl::StrCat(checker_.Explain(shape_.layouts[slot.output], result,
                                      shape_.sets->Output(slot.set, slot.output), reference),
                     " (set ", slot.set, ")")};
  }
  return std::nullopt;
}

absl::Status DeviceCheckedCalls::EnqueueWatch(absl::Span<const int> touched) {
  std::vector<CompareTask> tasks;
  watched_.clear();
  for (int set = 0; set < shape_.sets->sets(); ++set) {
    shape_.sets->AppendTasks(DeviceBufferSets::Part::kBands, set, &tasks, &watched_);
  }
  const size_t of_sets = tasks.size();
  kernel_.AppendBandTasks(shape_.sets->pattern(), &tasks);
  workspace_tasks_ = static_cast<int>(tasks.size() - of_sets);
  const absl::StatusOr<int> bands = checker_.Compare(tasks);
  if (!bands.ok()) return bands.status();
  watch_first_ = *bands;
  if (touched.empty()) return absl::OkStatus();
  // Apart from the bands: they are much longer, and want more blocks each.
  tasks.clear();
  for (int set : touched) {
    shape_.sets->AppendTasks(DeviceBufferSets::Part::kInputs, set, &tasks, &watched_);
  }
  return checker_.Compare(tasks).status();
}

DeviceCheckedCalls::Verdict DeviceCheckedCalls::JudgeWatch() {
  using Part = DeviceBufferSets::Part;
  std::optional<CandidateFailure> failure;
  int number = watch_first_;
  const auto bands_end = std::find_if(watched_.begin(), watched_.end(),
                                      [](const auto& one) { return one.part == Part::kInputs; });
  for (auto one = watched_.begin(); one != watched_.end(); ++one, ++number) {
    if (one == bands_end) number += workspace_tasks_;
    const uint64_t at = checker_.difference(number);
    if (at == kNoDifference) continue;
    const bool band = one->part == Part::kBands;
    if (!failure) {
      failure = CandidateFailure{band ? FailureKind::kOutOfBounds : FailureKind::kInputModified,
                                 absl::StrCat("wrote to ", shape_.sets->DescribeDamage(*one, at))};
    }
    // The next candidate must find all as it was.
    const absl::Status repaired =
        band ? shape_.sets->RepairBands(one->set) : shape_.sets->RepairInput(one->set, one->buffer);
    if (!repaired.ok()) return repaired;
  }
  const int workspace_first = watch_first_ + static_cast<int>(bands_end - watched_.begin());
  for (int task = 0; task < workspace_tasks_ && !failure; ++task) {
    const uint64_t at = checker_.difference(workspace_first + task);
    if (at == kNoDifference) continue;
    failure = CandidateFailure{
        FailureKind::kOutOfBounds,
        absl::StrCat("wrote to byte ", kernel_.BandOffset(task, at),
                     " of the workspace, which has ", kernel_.kernel().workspace.bytes, " B")};
  }
  return failure;
}

absl::StatusOr<std::vector<std::byte>> DeviceCheckedCalls::Download(CUdeviceptr from,
                                                                    int64_t bytes) {
  std::vector<std::byte> data(static_cast<size_t>(bytes));
  const CudaDriver& driver = context_.driver();
  absl::Status status =
      driver.Check(driver.MemcpyDtoHAsync(data.data(), from, data.size(), context_.stream()),
                   "cuMemcpyDtoHAsync");
  if (status.ok()) status = context_.Synchronize();
  if (!status.ok()) return status;
  return data;
}

DeviceCheckedCalls::Verdict DeviceCheckedCalls::CheckGaps(int set, unsigned char poison) {
  for (int o = 0; o < shape_.sets->outputs(); ++o) {
    const OutputLayout& layout = checker_.layout(shape_.layouts[o]);
    if (layout.Dense()) continue;
    const auto bytes = Download(shape_.sets->Output(set, o), shape_.sets->OutputBytes(o));
    if (!bytes.ok()) return bytes.status();
    const int64_t gap = FindGapDamage(layout, bytes->data(), poison);
    if (gap < 0) continue;
    return CandidateFailure{
        FailureKind::kOutOfBounds,
        absl::StrCat("wrote to byte ", gap, " of output ", layout.name, ", between its rows")};
  }
  return std::nullopt;
}

// Do the outputs kept from the first call differ from those of the second?
DeviceCheckedCalls::Verdict DeviceCheckedCalls::CompareKept(int set, int first_difference) {
  for (int o = 0; o < shape_.sets->outputs(); ++o) {
    uint64_t at = checker_.difference(first_difference + o);
    if (at == kNoDifference) continue;
    const OutputLayout& layout = checker_.layout(shape_.layouts[o]);
    const int64_t bytes = shape_.sets->OutputBytes(o);
    const auto kept = Download(shape_.kept[o].address(), bytes);
    if (!kept.ok()) return kept.status();
    const auto now = Download(shape_.sets->Output(set, o), bytes);
    if (!now.ok()) return now.status();
    if (!layout.Dense()) {
      // Gaps between rows differ by their poison: only elements count.
      const int size = Info(layout.type).bytes;
      at = kNoDifference;
      for (int64_t i = 0; i < layout.elements() && at == kNoDifference; ++i) {
        const int64_t element = layout.Offset(i) * size;
        if (std::memcmp(kept->data() + element, now->data() + element, size) != 0) {
          at = static_cast<uint64_t>(element);
        }
      }
      if (at == kNoDifference) continue;
    }
    if ((*kept)[at] == std::byte{kNanPoison} && (*now)[at] == std::byte{kFinitePoison}) {
      return CandidateFailure{
          FailureKind::kWrongOutput,
          absl::StrCat("byte ", at, " of output ", layout.name, " is never written")};
    }
    return CandidateFailure{FailureKind::kNondeterministic,
                            absl::StrCat("two calls on the same inputs differ from byte ", at,
                                         " of output ", layout.name, " on")};
  }
  return std::nullopt;
}

DeviceCheckedCalls::Verdict DeviceCheckedCalls::CallTwice(int set, double hopeless_seconds,
                                                          double* seconds) {
  const CudaDriver& driver = context_.driver();
  absl::StatusOr<std::unique_ptr<EventPair>> events = EventPair::Make(context_);
  if (!events.ok()) return events.status();
  // The first call, alone: it may be hopeless, or end the context.
  std::vector<Slot> slots;
  absl::Status status = checker_.Begin();
  if (status.ok()) status = kernel_.FillWorkspace(kNanPoison);
  if (status.ok()) status = EnqueueCall(set, kNanPoison, events->get());
  if (status.ok()) status = EnqueueChecks(set, &slots);
  if (status.ok()) status = EnqueueWatch({set});
  if (status.ok()) status = checker_.Finish();
  if (!status.ok()) return status;
  absl::StatusOr<double> time = (*events)->Seconds();
  if (!time.ok()) return time.status();
  *seconds = *time;
  Verdict watch = JudgeWatch();
  if (!watch.ok() || *watch) return watch;
  Verdict gaps = CheckGaps(set, kNanPoison);
  if (!gaps.ok() || *gaps) return gaps;
  const std::optional<CandidateFailure> first = JudgeOutputs(slots);
  if (!first && *time > hopeless_seconds) return std::nullopt;

  slots.clear();
  status = checker_.Begin();
  for (int o = 0; o < shape_.sets->outputs() && status.ok(); ++o) {
    status = driver.Check(
        driver.MemcpyDtoDAsync(shape_.kept[o].address(), shape_.sets->Output(set, o),
                               static_cast<size_t>(shape_.sets->OutputBytes(o)), context_.stream()),
        "cuMemcpyDtoDAsync");
  }
  if (status.ok()) status = kernel_.FillWorkspace(kFinitePoison);
  if (status.ok()) status = EnqueueCall(set, kFinitePoison, events->get());
  if (status.ok()) status = EnqueueChecks(set, &slots);
  if (!status.ok()) return status;
  std::vector<CompareTask> tasks;
  for (int o = 0; o < shape_.sets->outputs(); ++o) {
    tasks.push_back({shape_.kept[o].address(), shape_.sets->Output(set, o),
                     static_cast<uint64_t>(shape_.sets->OutputBytes(o))});
  }
  const absl::StatusOr<int> kept = checker_.Compare(tasks);
  if (!kept.ok()) return kept.status();
  if (status = EnqueueWatch({set}); !status.ok()) return status;
  if (status = checker_.Finish(); !status.ok()) return status;
  if (time = (*events)->Seconds(); !time.ok()) return time.status();
  *seconds = std::min(*seconds, *time);
  watch = JudgeWatch();
  if (!watch.ok() || *watch) return watch;
  const Verdict same = CompareKept(set, *kept);
  if (!same.ok() || *same) return same;
  const std::optional<CandidateFailure> second = JudgeOutputs(slots);
  return first ? first : second;
}

DeviceCheckedCalls::Verdict DeviceCheckedCalls::CallEach(absl::Span<const int> sets,
                                                         unsigned char poison,
                                                         absl::Span<const int> touched) {
  for (size_t begin = 0; begin < sets.size(); begin += kMostCallsAtOnce) {
    const absl::Span<const int> part = sets.subspan(begin, kMostCallsAtOnce);
    const bool last = begin + part.size() == sets.size();
    std::vector<Slot> slots;
    absl::Status status = checker_.Begin();
    for (int set : part) {
      if (status.ok()) status = EnqueueCall(set, poison, nullptr);
      if (status.ok()) status = EnqueueChecks(set, &slots);
    }
    if (status.ok()) status = EnqueueWatch(last ? touched : part);
    if (status.ok()) status = checker_.Finish();
    if (!status.ok()) return status;
    Verdict watch = JudgeWatch();
    if (!watch.ok() || *watch) return watch;
    if (std::optional<CandidateFailure> failure = JudgeOutputs(slots)) return failure;
    for (int set : part) {
      Verdict gaps = CheckGaps(set, poison);
      if (!gaps.ok() || *gaps) return gaps;
    }
  }
  return std::nullopt;
}

absl::Status DeviceCheckedCalls::PoisonOutputs(absl::Span<const int> sets, unsigned char poison) {
  for (int set : sets) {
    if (absl::Status status = shape_.sets->Poison(set, poison); !status.ok()) return status;
  }
  return absl::OkStatus();
}

DeviceCheckedCalls::Verdict DeviceCheckedCalls::CheckOutputs(absl::Span<const int> sets) {
  std::vector<Slot> slots;
  absl::Status status = checker_.Begin();
  for (int set : sets) {
    if (status.ok()) status = EnqueueChecks(set, &slots);
  }
  if (status.ok()) status = checker_.Finish();
  if (!status.ok()) return status;
  return JudgeOutputs(slots);
}

}  // namespace tilewright
