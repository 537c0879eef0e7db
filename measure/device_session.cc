#include "measure/device_session.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "measure/call_graph.h"
#include "measure/crash_report.h"
#include "measure/device_checked_calls.h"
#include "measure/device_conditions.h"
#include "measure/device_reference.h"
#include "measure/frames.h"
#include "measure/inputs.h"
#include "measure/statistics.h"

namespace tilewright {
namespace {

constexpr double kUnhurried = std::numeric_limits<double>::infinity();
// A graph of a screening takes about this long, so that a few of them make the samples.
constexpr double kGraphSeconds = 2e-3;
constexpr int kMostGraphCalls = 512;
constexpr int kFewestGraphCalls = 2;
constexpr int kMostGraphSamples = 40;
// Less than a screening may take (kMostTiming): a sample is the mean of a graph's calls, and ten of
// them rank candidates as twenty do.
constexpr double kMostGraphTiming = 20e-3;
constexpr double kSlowGraphBudget = 8e-3;
// A call longer than this is timed alone.
constexpr double kLongCall = 20e-3;
// A burst of the finals, as short as it may be: in a longer one a power-bound kernel is slowed down
// by its own heat more than in use.
constexpr double kGraphBurstSeconds = 10e-3;
constexpr int kFewestBurstCalls = 3;
constexpr int kMostBurstCalls = DeviceBufferSets::kMostSets;
constexpr double kStepSeconds = 0.1;

int CallsForSeconds(double call_seconds, double seconds, int fewest, int most) {
  if (call_seconds > kLongCall) return 1;
  const double calls = std::ceil(seconds / std::max(call_seconds, 1e-7));
  return std::clamp(static_cast<int>(std::min(calls, 1e6)), fewest, most);
}

class DeviceSession : public RunnerSession {
 public:
  DeviceSession(Workload workload, CudaContext& context, LaunchPool& pool, Supervisor supervisor)
      : workload_(std::move(workload)),
        context_(context),
        pool_(pool),
        supervisor_(std::move(supervisor)) {}

  absl::Status Prepare(const children::OpenSession& request) {
    absl::Status status = PrepareShapes(request);
    if (!status.ok() && !context_.Alive()) supervisor_.end(FailureOf(status), 0);
    return status;
  }

  int sets() const override { return shapes_[0].sets->sets(); }
  double reference_seconds() const override { return reference_seconds_; }

  children::KernelScreened Screen(const children::ScreenKernel& request) override {
    children::KernelScreened reply;
    CheckEvidence evidence;
    const Verdict verdict = ScreenChecked(request, &evidence, &reply);
    if (std::optional<CandidateFailure> failure = FailureIn(verdict, 0)) {
      SetFailure(*failure, reply.mutable_failure());
    }
    reply.set_check_json(EvidenceJson(evidence));
    return reply;
  }

  children::FinalsDone Finals(const children::RunFinals& request) override;

 private:
  using Verdict = DeviceCheckedCalls::Verdict;

  struct Entrant {
    std::unique_ptr<CudaKernel> kernel;
    std::unique_ptr<CallGraph> burst;
    std::optional<CandidateFailure> failure;
    CheckEvidence evidence;
    DeviceConditions conditions;  // of the last round
    std::vector<double> round_seconds;
  };

  absl::Status PrepareShapes(const children::OpenSession& request);
  absl::Status AddShape(const Sizes& sizes, const BufferSetsOptions& options,
                        CudaKernel& reference);

  void Report(const std::string& phase, int entrant) {
    SetCrashPhase(phase.c_str(), entrant);
    phase_ = phase;
    supervisor_.progress(phase, entrant);
    last_report_ = MonotonicSeconds();
  }
  // For steps that may be short: tells the supervisor only now and then.
  void Step(const std::string& phase, int entrant) {
    SetCrashPhase(phase.c_str(), entrant);
    phase_ = phase;
    if (MonotonicSeconds() - last_report_ > kStepSeconds) Report(phase, entrant);
  }

  // What a verdict says of the candidate. Does not return if the context has ended.
  std::optional<CandidateFailure> FailureIn(const Verdict& verdict, int entrant) {
    if (verdict.ok()) return *verdict;
    CandidateFailure failure = FailureOf(verdict.status());
    absl::StrAppend(&failure.text, " (", phase_, ")");
    if (!context_.Alive()) supervisor_.end(failure, entrant);
    return failure;
  }

  std::string EvidenceJson(const CheckEvidence& evidence) {
    const std::string json = evidence.ToJson();
    return absl::StrCat(absl::StripSuffix(json, "}"),
                        ConditionsJson(context_, conditions_, surroundings_), "}");
  }

  DeviceCheckedCalls Checked(size_t shape, CudaKernel& kernel, CheckEvidence* evidence) {
    return DeviceCheckedCalls(context_, *checker_, shapes_[shape], kernel, evidence);
  }

  absl::Status Bind(size_t shape, CudaKernel& kernel) {
    DeviceBufferSets* sets = shapes_[shape].sets.get();
    return kernel.Bind(sets->sizes(), [sets](int set) { return sets->Buffers(set); });
  }

  absl::StatusOr<std::unique_ptr<CudaKernel>> LoadKernel(const v1::BuiltKernel& built) {
    absl::StatusOr<Kernel> kernel = ParseBuiltKernel(built);
    if (!kernel.ok()) return kernel.status();
    return CudaKernel::Load(context_, *kernel, dependent_);
  }

  // Checks at the sizes beside those measured at; leaves the kernel bound to the measured ones.
  Verdict CheckExtraShapes(CudaKernel& kernel, CheckEvidence* evidence, int entrant);
  Verdict CheckAllSets(Entrant& entrant, int number, const char* when, double* call_seconds);
  Verdict PrepareEntrant(const v1::BuiltKernel& built, Entrant& entrant, int number);
  Verdict Burst(Entrant& entrant, int number);
  Verdict ScreenChecked(const children::ScreenKernel& request, CheckEvidence* evidence,
                        children::KernelScreened* reply);
  absl::Status Time(CudaKernel& kernel, absl::Span<const int> order, double anchor_seconds,
                    children::KernelScreened* reply);

  // `count` sets from `first` on, around the rotation.
  std::vector<int> SetsFrom(int first, int count) const {
    std::vector<int> sets(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) sets[i] = (first + i) % this->sets();
    return sets;
  }

  const Workload workload_;
  CudaContext& context_;
  LaunchPool& pool_;
  const Supervisor supervisor_;
  std::unique_ptr<DeviceChecker> checker_;
  bool warm_ = false;
  bool dependent_ = false;
  double limit_seconds_ = 0;
  uint64_t seed_ = 1;
  double reference_seconds_ = 0;
  double last_report_ = 0;
  std::string phase_;
  DeviceSurroundings surroundings_;
  DeviceConditions conditions_;      // of the last timing
  std::vector<DeviceShape> shapes_;  // the first is measured, the others are only checked
};

absl::Status DeviceSession::PrepareShapes(const children::OpenSession& request) {
  warm_ = request.warm();
  dependent_ = request.dependent();
  limit_seconds_ = request.limit_seconds();
  seed_ = request.input_seed();
  const Sizes at(request.at_sizes().begin(), request.at_sizes().end());
  if (absl::Status status = workload_.CheckSizes(at); !status.ok()) return status;
  surroundings_ = ReadSurroundings(context_);
  Report("loading the check", 0);
  absl::StatusOr<Kernel> check = ParseBuiltKernel(request.device_check());
  if (!check.ok()) return check.status();
  absl::StatusOr<std::unique_ptr<DeviceChecker>> checker = DeviceChecker::Make(context_, *check);
  if (!checker.ok()) return checker.status();
  checker_ = *std::move(checker);
  absl::StatusOr<std::unique_ptr<CudaKernel>> reference = LoadKernel(request.reference());
  if (!reference.ok()) return reference.status();

  BufferSetsOptions options;
  options.seed = seed_;
  options.rotation_bytes = request.rotation_bytes();
  options.contents = ChooseContents(workload_, at);
  if (absl::Status status = AddShape(at, options, **reference); !status.ok()) return status;
  options.rotation_bytes = 0;
  options.contents = 1;
  for (const Sizes& sizes : ChooseExtraShapes(workload_, at, seed_)) {
    ++options.seed;
    if (absl::Status status = AddShape(sizes, options, **reference); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status DeviceSession::AddShape(const Sizes& sizes, const BufferSetsOptions& options,
                                     CudaKernel& reference) {
  Report("making inputs", 0);
  DeviceShape shape;
  absl::StatusOr<std::unique_ptr<DeviceBufferSets>> sets =
      DeviceBufferSets::Make(context_, workload_, sizes, options, pool_);
  if (!sets.ok()) return sets.status();
  shape.sets = *std::move(sets);
  const double start = MonotonicSeconds();
  absl::Status status = MakeDeviceReferences(
      context_, workload_, reference, options.seed, *checker_,
      [this](const std::string& phase) { Report(phase, 0); }, &shape);
  if (!status.ok()) return status;
  reference_seconds_ += MonotonicSeconds() - start;
  shapes_.push_back(std::move(shape));
  return absl::OkStatus();
}

DeviceSession::Verdict DeviceSession::CheckExtraShapes(CudaKernel& kernel, CheckEvidence* evidence,
                                                       int entrant) {
  for (size_t s = 1; s < shapes_.size(); ++s) {
    if (absl::Status status = Bind(s, kernel); !status.ok()) return status;
    const std::string where =
        absl::StrCat("at sizes ", absl::StrJoin(shapes_[s].sets->sizes(), ","));
    Step(where, entrant);
    double seconds = 0;
    Verdict verdict = Checked(s, kernel, evidence).CallTwice(0, kUnhurried, &seconds);
    if (!verdict.ok()) return verdict;
    if (!*verdict) continue;
    CandidateFailure failure = **verdict;
    absl::StrAppend(&failure.text, " ", where);
    return failure;
  }
  if (absl::Status status = Bind(0, kernel); !status.ok()) return status;
  return std::nullopt;
}

DeviceSession::Verdict DeviceSession::ScreenChecked(const children::ScreenKernel& request,
                                                    CheckEvidence* evidence,
                                                    children::KernelScreened* reply) {
  conditions_ = {};
  Report("loading", 0);
  absl::StatusOr<std::unique_ptr<CudaKernel>> loaded = LoadKernel(request.kernel());
  if (!loaded.ok()) return loaded.status();
  CudaKernel& kernel = **loaded;
  Verdict verdict = CheckExtraShapes(kernel, evidence, 0);
  if (!verdict.ok() || *verdict) return verdict;

  DeviceCheckedCalls checked = Checked(0, kernel, evidence);
  const int first = warm_ ? 0 : static_cast<int>(MixBits(request.seed()) % sets());
  const double hopeless =
      request.anchor_seconds() > 0 ? kHopelessRatio * request.anchor_seconds() : kUnhurried;
  double call_seconds = 0;
  Report("first calls", 0);
  verdict = checked.CallTwice(first, std::max(hopeless, kGraphSeconds), &call_seconds);
  if (!verdict.ok() || *verdict) return verdict;
  if (call_seconds > hopeless && call_seconds > kGraphSeconds) {
    // One call of such a candidate may take longer than a whole screening of another: it is all
    // there is to learn.
    reply->add_samples_seconds(call_seconds);
    reply->set_device_ns(static_cast<uint64_t>(call_seconds * 1e9));
    return CheckTime(call_seconds, limit_seconds_);
  }
  const int calls =
      CallsForSeconds(call_seconds, kGraphSeconds, kFewestGraphCalls, kMostGraphCalls);
  const int window = warm_ ? 1 : std::min(sets(), calls);
  // At least one more set than the first is checked, so that one content's luck is not enough.
  const int checked_sets = std::min(sets(), std::max(window, 2));
  const std::vector<int> others = SetsFrom(first + 1, checked_sets - 1);
  Report("warm-up", 0);
  verdict = checked.CallEach(others, kNanPoison, others);
  if (!verdict.ok() || *verdict) return verdict;

  std::vector<int> order(static_cast<size_t>(calls));
  for (int i = 0; i < calls; ++i) order[i] = (first + i % window) % sets();
  Report("timing", 0);
  std::vector<int> touched = SetsFrom(first, window);
  absl::Status status = checked.PoisonOutputs(touched, kNanPoison);
  if (status.ok()) status = Time(kernel, order, request.anchor_seconds(), reply);
  if (!status.ok()) return status;
  Report("after timing", 0);
  verdict = checked.CheckOutputs(touched);
  if (!verdict.ok()) return verdict;
  if (*verdict) {
    CandidateFailure failure = **verdict;
    absl::StrAppend(&failure.text, ", by the calls that were timed");
    return failure;
  }
  const int after = static_cast<int>(MixBits(request.seed() + 1) % sets());
  if (std::find(touched.begin(), touched.end(), after) == touched.end()) touched.push_back(after);
  verdict = checked.CallEach({after}, kFinitePoison, touched);
  if (!verdict.ok()) return verdict;
  if (*verdict) {
    CandidateFailure failure = **verdict;
    absl::StrAppend(&failure.text, ", after timing");
    return failure;
  }
  const std::vector<double> samples(reply->samples_seconds().begin(),
                                    reply->samples_seconds().end());
  return CheckTime(Median(samples), limit_seconds_);
}

absl::Status DeviceSession::Time(CudaKernel& kernel, absl::Span<const int> order,
                                 double anchor_seconds, children::KernelScreened* reply) {
  absl::StatusOr<std::unique_ptr<CallGraph>> graph = CallGraph::Capture(context_, kernel, order);
  if (!graph.ok()) return graph.status();
  DeviceBufferSets& sets = *shapes_[0].sets;
  ConditionsWatch watch(context_, *checker_);
  if (absl::Status status = watch.Start(); !status.ok()) return status;
  const int calls = static_cast<int>(order.size());
  double budget = kMostGraphTiming;
  double timed = 0;
  for (int sample = 0; sample < kMostGraphSamples && timed < budget; ++sample) {
    if (!warm_ && sets.NeedsCold(calls)) {
      if (absl::Status status = sets.MakeCold(); !status.ok()) return status;
    }
    const absl::StatusOr<CallGraph::Times> times = (*graph)->Run();
    if (absl::IsInternal(times.status()) && sample + 1 < kMostGraphSamples) continue;  // not traced
    if (!times.ok()) return times.status();
    reply->add_samples_seconds(times->seconds);
    timed += times->event_seconds * calls;
    const bool slow = anchor_seconds > 0 && times->seconds > kSlowRatio * anchor_seconds;
    budget = slow ? kSlowGraphBudget : kMostGraphTiming;
  }
  reply->set_device_ns(static_cast<uint64_t>(timed * 1e9));
  const absl::StatusOr<DeviceConditions> conditions = watch.End();
  if (!conditions.ok()) return conditions.status();
  conditions_ = *conditions;
  return absl::OkStatus();
}

DeviceSession::Verdict DeviceSession::CheckAllSets(Entrant& entrant, int number, const char* when,
                                                   double* call_seconds) {
  Report(when, number);
  DeviceCheckedCalls checked = Checked(0, *entrant.kernel, &entrant.evidence);
  Verdict verdict = checked.CallTwice(0, kUnhurried, call_seconds);
  if (!verdict.ok() || *verdict) return verdict;
  const std::vector<int> all = SetsFrom(0, sets());
  return checked.CallEach(absl::MakeConstSpan(all).subspan(1), kNanPoison, all);
}

DeviceSession::Verdict DeviceSession::PrepareEntrant(const v1::BuiltKernel& built, Entrant& entrant,
                                                     int number) {
  Report("loading", number);
  absl::StatusOr<std::unique_ptr<CudaKernel>> kernel = LoadKernel(built);
  if (!kernel.ok()) return kernel.status();
  entrant.kernel = *std::move(kernel);
  Verdict verdict = CheckExtraShapes(*entrant.kernel, &entrant.evidence, number);
  if (!verdict.ok() || *verdict) return verdict;
  double call_seconds = 0;
  verdict = CheckAllSets(entrant, number, "before the rounds", &call_seconds);
  if (!verdict.ok() || *verdict) return verdict;
  const int calls =
      CallsForSeconds(call_seconds, kGraphBurstSeconds, kFewestBurstCalls, kMostBurstCalls);
  const std::vector<int> order = warm_ ? std::vector<int>(calls, 0) : SetsFrom(0, calls);
  absl::StatusOr<std::unique_ptr<CallGraph>> burst =
      CallGraph::Capture(context_, *entrant.kernel, order);
  if (!burst.ok()) return burst.status();
  entrant.burst = *std::move(burst);
  return std::nullopt;
}

// One burst after an idle: a graph that wakes the device and warms its code, then the timed one.
DeviceSession::Verdict DeviceSession::Burst(Entrant& entrant, int number) {
  DeviceBufferSets& sets = *shapes_[0].sets;
  Report("waking up before a burst", number);
  absl::StatusOr<CallGraph::Times> times = entrant.burst->Run();
  if (!times.ok() && !absl::IsInternal(times.status())) return times.status();
  Step("a burst of the finals", number);
  const std::vector<int> written =
      SetsFrom(0, warm_ ? 1 : std::min(this->sets(), entrant.burst->calls()));
  DeviceCheckedCalls checked = Checked(0, *entrant.kernel, &entrant.evidence);
  if (absl::Status status = checked.PoisonOutputs(written, kNanPoison); !status.ok()) return status;
  ConditionsWatch watch(context_, *checker_);
  if (absl::Status status = watch.Start(); !status.ok()) return status;
  if (!warm_ && sets.NeedsCold(entrant.burst->calls())) {
    if (absl::Status status = sets.MakeCold(); !status.ok()) return status;
  }
  times = entrant.burst->Run();
  if (absl::IsInternal(times.status())) {  // not traced: a dropped sample
    entrant.round_seconds.push_back(std::nan(""));
    return std::nullopt;
  }
  if (!times.ok()) return times.status();
  const absl::StatusOr<DeviceConditions> conditions = watch.End();
  if (!conditions.ok()) return conditions.status();
  Verdict outputs = checked.CheckOutputs(written);
  if (!outputs.ok() || *outputs) return outputs;
  entrant.conditions = *conditions;
  entrant.round_seconds.push_back(conditions->dropped() ? std::nan("") : times->seconds);
  return CheckTime(times->seconds, limit_seconds_);
}

children::FinalsDone DeviceSession::Finals(const children::RunFinals& request) {
  std::vector<Entrant> entrants(request.kernels_size());
  for (int e = 0; e < request.kernels_size(); ++e) {
    entrants[e].failure = FailureIn(PrepareEntrant(request.kernels(e), entrants[e], e), e);
  }
  surroundings_ = ReadSurroundings(context_);
  std::mt19937_64 random(request.order_seed());
  for (uint32_t round = 0; round < request.rounds(); ++round) {
    std::vector<int> order;
    for (int e = 0; e < request.kernels_size(); ++e) {
      if (!entrants[e].failure) order.push_back(e);
    }
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
    for (int e : order) {
      Report("idle before a burst", e);
      absl::SleepFor(absl::Milliseconds(request.idle_ms()));
      entrants[e].failure = FailureIn(Burst(entrants[e], e), e);
    }
  }
  children::FinalsDone done;
  for (int e = 0; e < request.kernels_size(); ++e) {
    Entrant& entrant = entrants[e];
    double seconds = 0;
    if (!entrant.failure) {
      entrant.failure = FailureIn(CheckAllSets(entrant, e, "after the rounds", &seconds), e);
    }
    children::FinalsDone::Entrant* out = done.add_entrants();
    for (double round : entrant.round_seconds) out->add_round_seconds(round);
    conditions_ = entrant.conditions;
    out->set_check_json(EvidenceJson(entrant.evidence));
    if (entrant.failure) SetFailure(*entrant.failure, out->mutable_failure());
  }
  return done;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunnerSession>> OpenDeviceSession(
    const children::OpenSession& request, CudaContext& context, LaunchPool& pool,
    const Supervisor& supervisor) {
  absl::StatusOr<Workload> workload = Workload::FromCanonicalText(request.workload_text());
  if (!workload.ok()) return workload.status();
  auto session = std::make_unique<DeviceSession>(*std::move(workload), context, pool, supervisor);
  if (absl::Status status = session->Prepare(request); !status.ok()) return status;
  return session;
}

}  // namespace tilewright
