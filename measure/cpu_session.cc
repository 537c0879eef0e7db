// The session of a CPU. While calls are checked only the set in use may be written; before timing,
// the sets that the warm-up left out are read through, so that every timed call finds its data
// cold.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "measure/checked_calls.h"
#include "measure/cpu_runner_device.h"
#include "measure/crash_report.h"
#include "measure/frames.h"
#include "measure/inputs.h"
#include "measure/runner_session.h"
#include "measure/statistics.h"
#include "measure/thermal.h"

namespace tilewright {
namespace {

// Every set that is timed is checked first, which costs more than timing it, so short kernels get
// less than is allowed, and longer ones enough for so many calls.
constexpr double kTimingBudget = 25e-3;
constexpr int kWantedCalls = 4;
constexpr int kSlowCalls = 5;
constexpr double kNeverHopeless = std::numeric_limits<double>::infinity();
constexpr int kMostSamples = 64;
// A workload whose sets do not cover the rotation is made cold before each pass over them, this
// often.
constexpr int kMostColdPasses = 4;
// A burst of the finals lasts at least this long and this many calls. It begins with untimed calls
// for kWakeSeconds: after an idle, threads, caches and the clock take about that long to be what
// they are in a program that calls the kernel again and again.
constexpr double kBurstSeconds = 50e-3;
constexpr int kBurstCalls = 3;
// The calls of a burst are counted by what one took alone. On cores that others use a call on
// several threads may take a hundred times that, so a burst also ends, with the calls it has, after
// kLongestBurst. The clock is looked at kBurstLooks times, so that it is no part of a short call.
constexpr double kLongestBurst = 4 * kBurstSeconds;
constexpr int kBurstLooks = 16;
constexpr double kWakeSeconds = 10e-3;
constexpr double kProgressSeconds = 0.1;

CandidateFailure LoadFailure(const absl::Status& status) {
  const FailureKind kind =
      absl::IsResourceExhausted(status) ? FailureKind::kOutOfMemory : FailureKind::kLaunchFailed;
  return {kind, std::string(status.message())};
}

// How a screening is timed, once a first call's time is known.
struct TimingPlan {
  int calls;       // at most
  double budget;   // seconds
  int per_sample;  // calls
};

TimingPlan PlanTiming(double call_seconds, double anchor_seconds) {
  const double call = std::max(call_seconds, 1e-9);
  const auto calls_within = [&](double budget) {
    return std::max(1, static_cast<int>(budget / call));
  };
  int calls =
      std::max(calls_within(kTimingBudget), std::min(kWantedCalls, calls_within(kMostTiming)));
  if (anchor_seconds > 0 && call > kSlowRatio * anchor_seconds) {
    calls = std::max(calls_within(kSlowBudget), std::min(calls, kSlowCalls));
  }
  return {calls, kMostTiming, std::max(1, calls / kMostSamples)};
}

class CpuSession : public RunnerSession {
 public:
  CpuSession(Workload workload, LaunchPool& pool, Supervisor supervisor)
      : workload_(std::move(workload)), pool_(pool), supervisor_(std::move(supervisor)) {}

  absl::Status Prepare(const children::OpenSession& request) {
    warm_ = request.warm();
    limit_seconds_ = request.limit_seconds();
    seed_ = request.input_seed();
    absl::StatusOr<Kernel> reference = ParseBuiltKernel(request.reference());
    if (!reference.ok()) return reference.status();
    absl::StatusOr<std::unique_ptr<KernelCaller>> caller = KernelCaller::Make(*reference, pool_);
    if (!caller.ok()) return caller.status();
    const Sizes at(request.at_sizes().begin(), request.at_sizes().end());
    if (absl::Status status = workload_.CheckSizes(at); !status.ok()) return status;
    BufferSetsOptions options;
    options.seed = seed_;
    options.rotation_bytes = request.rotation_bytes();
    options.contents = ChooseContents(workload_, at);
    if (absl::Status status = AddShape(at, options, **caller); !status.ok()) return status;
    options.rotation_bytes = 0;
    options.contents = 1;
    for (const Sizes& sizes : ChooseExtraShapes(workload_, at, seed_)) {
      ++options.seed;
      if (absl::Status status = AddShape(sizes, options, **caller); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  int sets() const override { return shapes_[0].sets->sets(); }
  double reference_seconds() const override { return reference_seconds_; }

  children::KernelScreened Screen(const children::ScreenKernel& request) override {
    children::KernelScreened reply;
    CheckEvidence evidence;
    std::optional<CandidateFailure> failure = ScreenChecked(request, &evidence, &reply);
    reply.set_check_json(evidence.ToJson());
    if (failure) SetFailure(*failure, reply.mutable_failure());
    return reply;
  }

  children::FinalsDone Finals(const children::RunFinals& request) override;

 private:
  struct Entrant {
    std::unique_ptr<KernelCaller> caller;
    std::optional<CandidateFailure> failure;
    CheckEvidence evidence;
    std::vector<double> round_seconds;
    double call_seconds = 0;
  };

  absl::Status AddShape(const Sizes& sizes, const BufferSetsOptions& options,
                        KernelCaller& reference) {
    Report("making inputs", 0);
    absl::StatusOr<std::unique_ptr<BufferSets>> sets =
        BufferSets::Make(workload_, sizes, options, pool_);
    if (!sets.ok()) return sets.status();
    const double start = MonotonicSeconds();
    absl::StatusOr<std::vector<Expected>> expected =
        MakeReferences(workload_, **sets, reference, options.seed, pool_,
                       [this](const std::string& phase) { Report(phase, 0); });
    if (!expected.ok()) return expected.status();
    reference_seconds_ += MonotonicSeconds() - start;
    shapes_.push_back({*std::move(sets), *std::move(expected)});
    return absl::OkStatus();
  }

  void Report(const std::string& phase, int entrant) {
    SetCrashPhase(phase.c_str(), entrant);
    supervisor_.progress(phase, entrant);
    last_progress_ = MonotonicSeconds();
  }
  // For steps that may be short: tells the supervisor only now and then.
  void Step(const std::string& phase, int entrant) {
    SetCrashPhase(phase.c_str(), entrant);
    if (MonotonicSeconds() - last_progress_ > kProgressSeconds) Report(phase, entrant);
  }

  CheckedCalls Checked(size_t shape, KernelCaller& caller, CheckEvidence* evidence, int entrant) {
    return CheckedCalls(
        shapes_[shape], caller, pool_,
        [this, entrant](int set, const char* why) {
          Step(absl::StrFormat("call on set %d, %s", set, why), entrant);
        },
        evidence);
  }

  static absl::Status Bind(const MeasuredShape& shape, KernelCaller& caller) {
    std::vector<BufferTable> tables;
    for (int set = 0; set < shape.sets->sets(); ++set) tables.push_back(shape.sets->Buffers(set));
    return caller.Bind(shape.sets->sizes(), tables);
  }

  // Checks at the sizes beside those measured at; leaves the caller bound to the measured ones.
  std::optional<CandidateFailure> CheckExtraShapes(KernelCaller& caller, CheckEvidence* evidence,
                                                   int entrant) {
    for (size_t s = 1; s < shapes_.size(); ++s) {
      if (absl::Status status = Bind(shapes_[s], caller); !status.ok()) return LoadFailure(status);
      const std::string why =
          absl::StrCat("at sizes ", absl::StrJoin(shapes_[s].sets->sizes(), ","));
      double seconds = 0;
      std::optional<CandidateFailure> failure =
          Checked(s, caller, evidence, entrant).CallTwice(0, why.c_str(), kNeverHopeless, &seconds);
      if (failure) {
        absl::StrAppend(&failure->text, " ", why);
        return failure;
      }
    }
    if (absl::Status status = Bind(shapes_[0], caller); !status.ok()) return LoadFailure(status);
    return std::nullopt;
  }

  std::optional<CandidateFailure> ScreenChecked(const children::ScreenKernel& request,
                                                CheckEvidence* evidence,
                                                children::KernelScreened* reply);
  void Time(KernelCaller& caller, int first, int window, const TimingPlan& plan,
            children::KernelScreened* reply);

  std::optional<CandidateFailure> CheckAllSets(Entrant& entrant, int number, const char* when);
  double Burst(Entrant& entrant, int number);

  Workload workload_;
  LaunchPool& pool_;
  const Supervisor supervisor_;
  bool warm_ = false;
  double limit_seconds_ = 0;
  uint64_t seed_ = 1;
  double reference_seconds_ = 0;
  double last_progress_ = 0;
  int cursor_ = 0;                     // where the rotation stands
  std::vector<MeasuredShape> shapes_;  // the first is measured, the others are only checked
};

std::optional<CandidateFailure> CpuSession::ScreenChecked(const children::ScreenKernel& request,
                                                          CheckEvidence* evidence,
                                                          children::KernelScreened* reply) {
  Report("loading", 0);
  absl::StatusOr<Kernel> kernel = ParseBuiltKernel(request.kernel());
  if (!kernel.ok()) return LoadFailure(kernel.status());
  absl::StatusOr<std::unique_ptr<KernelCaller>> made = KernelCaller::Make(*kernel, pool_);
  if (!made.ok()) return LoadFailure(made.status());
  KernelCaller& caller = **made;
  if (auto failure = CheckExtraShapes(caller, evidence, 0)) return failure;

  BufferSets& sets = *shapes_[0].sets;
  CheckedCalls checked = Checked(0, caller, evidence, 0);
  const int first = warm_ ? 0 : static_cast<int>(MixBits(request.seed()) % sets.sets());
  double call_seconds = 0;
  const double hopeless =
      request.anchor_seconds() > 0 ? kHopelessRatio * request.anchor_seconds() : kNeverHopeless;
  if (auto failure = checked.CallTwice(first, "warm-up", hopeless, &call_seconds)) return failure;
  if (call_seconds > hopeless) {
    // One call of such a candidate may take longer than a whole screening of another: it is all
    // there is to learn.
    reply->add_samples_seconds(call_seconds);
    reply->set_device_ns(static_cast<uint64_t>(call_seconds * 1e9));
    return CheckTime(call_seconds, limit_seconds_);
  }
  const TimingPlan plan = PlanTiming(call_seconds, request.anchor_seconds());
  const int window = warm_ ? 1 : std::min(sets.sets(), plan.calls);
  // At least one more set than the first is checked, so that one content's luck is not enough.
  const int checked_sets = std::min(sets.sets(), std::max(window, 2));
  for (int i = 1; i < checked_sets; ++i) {
    const int set = (first + i) % sets.sets();
    if (auto failure = checked.Call(set, kNanPoison, "warm-up")) return failure;
  }
  Time(caller, first, window, plan, reply);
  const int after = static_cast<int>(MixBits(request.seed() + 1) % sets.sets());
  if (auto failure = checked.Call(after, kFinitePoison, "after timing")) {
    absl::StrAppend(&failure->text, ", after timing");
    return failure;
  }
  const std::vector<double> samples(reply->samples_seconds().begin(),
                                    reply->samples_seconds().end());
  return CheckTime(Median(samples), limit_seconds_);
}

void CpuSession::Time(KernelCaller& caller, int first, int window, const TimingPlan& plan,
                      children::KernelScreened* reply) {
  BufferSets& sets = *shapes_[0].sets;
  sets.AllowAllOutputs();
  Step("timing", 0);
  int set = 0;  // within the window
  int cold_passes = 0;
  double timed = 0;
  double now = MonotonicSeconds();
  for (int calls = 0; calls < plan.calls;) {
    if (!warm_ && set == 0 && (calls == 0 || sets.needs_spare())) {
      if (++cold_passes > kMostColdPasses) break;
      sets.MakeCold(first, window, pool_);
      now = MonotonicSeconds();
    }
    const double sample_start = now;
    const int count = std::min({plan.per_sample, plan.calls - calls, window - set});
    for (int i = 0; i < count; ++i) caller.Call((first + set + i) % sets.sets());
    set = (set + count) % window;
    calls += count;
    now = MonotonicSeconds();
    reply->add_samples_seconds((now - sample_start) / count);
    timed += now - sample_start;
    if (timed > plan.budget) break;
  }
  reply->set_device_ns(static_cast<uint64_t>(timed * 1e9));
}

std::optional<CandidateFailure> CpuSession::CheckAllSets(Entrant& entrant, int number,
                                                         const char* when) {
  CheckedCalls checked = Checked(0, *entrant.caller, &entrant.evidence, number);
  if (auto failure = checked.CallTwice(0, when, kNeverHopeless, &entrant.call_seconds))
    return failure;
  for (int set = 1; set < shapes_[0].sets->sets(); ++set) {
    if (auto failure = checked.Call(set, kNanPoison, when)) return failure;
  }
  return std::nullopt;
}

double CpuSession::Burst(Entrant& entrant, int number) {
  BufferSets& sets = *shapes_[0].sets;
  int calls =
      std::max(kBurstCalls,
               static_cast<int>(std::ceil(kBurstSeconds / std::max(entrant.call_seconds, 1e-9))));
  if (sets.needs_spare() && !warm_) calls = std::min(calls, sets.sets() - 1);
  const auto next_set = [&] {
    if (warm_) return 0;
    cursor_ = (cursor_ + 1) % sets.sets();
    return cursor_;
  };
  Step("first calls of a burst", number);
  const double wake = MonotonicSeconds();
  do {
    entrant.caller->Call(next_set());
  } while (MonotonicSeconds() - wake < kWakeSeconds);
  if (sets.needs_spare() && !warm_) sets.MakeCold(0, sets.sets(), pool_);
  Step("a burst of the finals", number);
  const int between_looks = std::max(kBurstCalls, calls / kBurstLooks);
  const double start = MonotonicSeconds();
  double now = start;
  int done = 0;
  while (done < calls && now - start < kLongestBurst) {
    for (const int end = std::min(calls, done + between_looks); done < end; ++done)
      entrant.caller->Call(next_set());
    now = MonotonicSeconds();
  }
  return (now - start) / done;
}

children::FinalsDone CpuSession::Finals(const children::RunFinals& request) {
  std::vector<Entrant> entrants(request.kernels_size());
  for (int e = 0; e < request.kernels_size(); ++e) {
    Entrant& entrant = entrants[e];
    Report("loading", e);
    absl::StatusOr<Kernel> kernel = ParseBuiltKernel(request.kernels(e));
    absl::StatusOr<std::unique_ptr<KernelCaller>> caller =
        kernel.ok() ? KernelCaller::Make(*kernel, pool_)
                    : absl::StatusOr<std::unique_ptr<KernelCaller>>(kernel.status());
    if (!caller.ok()) {
      entrant.failure = LoadFailure(caller.status());
      continue;
    }
    entrant.caller = *std::move(caller);
    entrant.failure = CheckExtraShapes(*entrant.caller, &entrant.evidence, e);
    if (!entrant.failure) entrant.failure = CheckAllSets(entrant, e, "before the rounds");
  }
  shapes_[0].sets->AllowAllOutputs();
  std::mt19937_64 random(request.order_seed());
  for (uint32_t round = 0; round < request.rounds(); ++round) {
    std::vector<int> order;
    for (int e = 0; e < request.kernels_size(); ++e) {
      if (!entrants[e].failure) order.push_back(e);
    }
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
    for (int e : order) {
      Report("idle before a burst", e);
      pool_.SetActive(false);
      absl::SleepFor(absl::Milliseconds(request.idle_ms()));
      pool_.SetActive(true);
      const ThermalMark before = ReadThermalMark();
      double seconds = Burst(entrants[e], e);
      entrants[e].failure = CheckTime(seconds, limit_seconds_);
      if (ThrottledSince(before)) seconds = std::nan("");
      entrants[e].round_seconds.push_back(seconds);
    }
  }
  children::FinalsDone done;
  for (size_t e = 0; e < entrants.size(); ++e) {
    Entrant& entrant = entrants[e];
    if (!entrant.failure)
      entrant.failure = CheckAllSets(entrant, static_cast<int>(e), "after the rounds");
    children::FinalsDone::Entrant* out = done.add_entrants();
    for (double seconds : entrant.round_seconds) out->add_round_seconds(seconds);
    out->set_check_json(entrant.evidence.ToJson());
    if (entrant.failure) SetFailure(*entrant.failure, out->mutable_failure());
  }
  return done;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunnerSession>> OpenCpuSession(const children::OpenSession& request,
                                                              LaunchPool& pool,
                                                              const Supervisor& supervisor) {
  absl::StatusOr<Workload> workload = Workload::FromCanonicalText(request.workload_text());
  if (!workload.ok()) return workload.status();
  auto session = std::make_unique<CpuSession>(*std::move(workload), pool, supervisor);
  if (absl::Status status = session->Prepare(request); !status.ok()) return status;
  return session;
}

}  // namespace tilewright
