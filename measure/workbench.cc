#include "measure/workbench.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "measure/builder_pool.h"
#include "measure/built_ahead.h"
#include "measure/frames.h"
#include "measure/inputs.h"
#include "measure/protocol.h"
#include "measure/reference.h"
#include "measure/runner_link.h"
#include "measure/statistics.h"
#include "schedule/variant.h"

namespace tilewright {
namespace {

// Rotated inputs cover this many times the last-level cache (DESIGN.md 6).
constexpr double kRotation = 2.5;
constexpr int kTrialsBetweenAnchors = 30;
// Every figure of a session stands in relation to the anchor's, so one disturbed timing of it would
// shift them all: it is screened this often in a row, and the median counts.
constexpr int kAnchorTimings = 3;
// One step of opening a session: a reference of a large workload takes minutes.
constexpr absl::Duration kOpenStepTimeout = absl::Minutes(15);
// Beside a call, a step makes inputs, checks outputs and starts threads.
constexpr absl::Duration kStepSlack = absl::Seconds(2);
constexpr absl::Duration kProbeTimeout = absl::Seconds(20);

// The known-good kernel: small, odd sizes, a known answer by the interpreter and the reference.
constexpr const char* kProbeExpression = "C[m,n] = sum(k: A[m,k] * B[k,n])";
constexpr const char* kProbeSizes = "m=23,n=41,k=57";

CandidateFailure FailureOf(const v1::Failure& failure) {
  const absl::StatusOr<FailureKind> kind = ParseFailureKind(failure.kind());
  if (!kind.ok()) return {FailureKind::kCrashed, std::string(kind.status().message())};
  return {*kind, failure.text()};
}

BuildOutcome OutcomeOf(const v1::BuiltKernel& built) {
  BuildOutcome outcome;
  outcome.build_time = absl::Nanoseconds(built.facts().build_ns());
  if (built.has_failure()) {
    outcome.failure = FailureOf(built.failure());
    return outcome;
  }
  absl::StatusOr<Kernel> kernel = ParseRecipe(built.recipe_json());
  if (!kernel.ok() || kernel->objects.size() != static_cast<size_t>(built.objects_size())) {
    outcome.failure = {FailureKind::kBuildFailed,
                       kernel.ok() ? "the builder's recipe and objects do not match"
                                   : std::string(kernel.status().message())};
    return outcome;
  }
  for (int i = 0; i < built.objects_size(); ++i) kernel->objects[i].bytes = built.objects(i);
  outcome.kernel = *std::move(kernel);
  return outcome;
}

v1::BuiltKernel MessageOf(const Kernel& kernel) {
  v1::BuiltKernel message;
  message.set_recipe_json(kernel.RecipeJson());
  for (const CodeObject& object : kernel.objects) message.add_objects(object.bytes);
  return message;
}

// Time spent at work; what overlaps counts once. Thread-safe.
class BusyClock {
 public:
  void Enter() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (depth_++ == 0) start_ = MonotonicSeconds();
  }
  void Leave() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (--depth_ == 0) total_ += MonotonicSeconds() - start_;
  }
  double seconds() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return total_;
  }

 private:
  mutable std::mutex mutex_;
  int depth_ = 0;
  double start_ = 0;
  double total_ = 0;
};

class BusyStretch {
 public:
  explicit BusyStretch(BusyClock* clock) : clock_(clock) { clock_->Enter(); }
  ~BusyStretch() { clock_->Leave(); }

 private:
  BusyClock* clock_;
};

// The last-level cache, which rotated inputs must leave: L2 on a GPU, L3 (or all L2s) on a CPU.
double LastLevelBytes(const Target& target) {
  if (target.is_gpu()) return static_cast<double>(target.l2_bytes);
  return target.l3_bytes > 0 ? static_cast<double>(target.l3_bytes)
                             : static_cast<double>(target.l2_bytes) * target.cores;
}

// The host's cores that work for the device: its own on a CPU; for a GPU all that this process may
// use, since the runner and the worker mostly wait.
int HostCores(const Target& target) {
  if (!target.is_gpu()) return target.cores;
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return 1;
  return std::max(1, CPU_COUNT(&allowed));
}

class LocalWorkbench : public Workbench {
 public:
  LocalWorkbench(DeviceDescription device, WorkbenchOptions options)
      : device_(std::move(device)),
        options_(std::move(options)),
        host_cores_(std::max(1, HostCores(device_.target) / options_.share)),
        builders_(BuilderPool::Make(options_.executable,
                                    options_.builders > 0 ? options_.builders : host_cores_)) {}

  bool builds_ahead() const override { return device_.target.is_gpu(); }
  std::vector<BuildOutcome> Build(const Workload& workload, absl::Span<const Schedule> schedules,
                                  absl::Duration timeout) override {
    const BusyStretch busy(&busy_);
    std::vector<BuildOutcome> outcomes(schedules.size());
    std::vector<v1::BuildTask> tasks;
    std::vector<size_t> numbers;  // of the tasks' schedules
    for (size_t i = 0; i < schedules.size(); ++i) {
      const Schedule& schedule = schedules[i];
      const bool dumped = !options_.dump_directory.empty();
      if (!dumped && ahead_.Find(workload, schedule.ToString(), &outcomes[i])) continue;
      numbers.push_back(i);
      v1::BuildTask& task = tasks.emplace_back();
      task.set_workload_text(workload.canonical_text());
      task.set_target_text(device_.target.ToString());
      task.set_schedule(schedule.ToString());
      if (!options_.dump_directory.empty()) {
        task.set_dump_directory(absl::StrCat(options_.dump_directory, "/",
                                             Sha256Hex(schedule.ToString()).substr(0, 16)));
      }
    }
    const bool first = ahead_.Begin(workload);
    if (first) {
      for (v1::BuildTask& task : SessionTasks(workload)) tasks.push_back(std::move(task));
    }
    std::vector<v1::BuiltKernel> built = BuildAll(tasks, timeout);
    for (size_t t = 0; t < numbers.size(); ++t) {
      outcomes[numbers[t]] = OutcomeOf(built[t]);
      ahead_.Keep(workload, tasks[t].schedule(), outcomes[numbers[t]]);
    }
    if (first) {
      built.erase(built.begin(), built.begin() + static_cast<std::ptrdiff_t>(numbers.size()));
      ahead_.KeepSession(workload, std::move(built));
    }
    return outcomes;
  }

  absl::Status OpenSession(const SessionSpec& spec) override;
  const SessionState& session() const override { return session_->state; }
  ScreenOutcome Screen(const Schedule& schedule, const Kernel& kernel) override;
  FinalsOutcome Finals(absl::Span<const Kernel> kernels, int rounds, absl::Duration idle,
                       uint64_t order_seed) override;
  absl::Duration busy() const override { return absl::Seconds(busy_.seconds()); }
  bool quarantined() const override { return quarantined_; }

 private:
  struct Session {
    explicit Session(SessionSpec s) : spec(std::move(s)) {}
    SessionSpec spec;
    children::OpenSession request;
    Kernel anchor_kernel;
    SessionState state;
    int trials_since_anchor = 0;
    bool anchor_due = false;  // the runner was replaced
    uint64_t screenings = 0;
  };
  struct ProbeKernels {
    children::OpenSession open;
    v1::BuiltKernel kernel;
  };

  // One thread at a time.
  std::vector<v1::BuiltKernel> BuildAll(absl::Span<const v1::BuildTask> tasks,
                                        absl::Duration timeout) {
    std::lock_guard<std::mutex> lock(builders_mutex_);
    return builders_->Build(tasks, timeout);
  }
  std::vector<v1::BuildTask> SessionTasks(const Workload& workload) const;
  absl::Status AddKernels(const Workload& workload, absl::Duration timeout,
                          children::OpenSession* request);
  absl::StatusOr<children::OpenSession> DescribeSession(const SessionSpec& spec);
  absl::Status StartRunner();
  absl::Status OpenInRunner();
  absl::Status ReadyRunner();
  void HandleDeath(const RunnerLink::Answer& answer);
  absl::Status PrepareProbe();
  absl::Status Probe();
  absl::Status ChooseAnchor();
  absl::Status TimeAnchorIfDue();
  ScreenOutcome ScreenInRunner(const Kernel& kernel, double anchor_seconds);
  ScreenOutcome TimeAnchor(const Kernel& kernel);
  absl::Status Quarantine(std::string reason);

  absl::Duration StepTimeout() const { return session_->spec.run_timeout + kStepSlack; }

  const DeviceDescription device_;
  const WorkbenchOptions options_;
  const int host_cores_;  // for builders, and for making inputs
  BuiltAhead ahead_;
  std::mutex builders_mutex_;
  std::unique_ptr<BuilderPool> builders_;
  std::unique_ptr<RunnerLink> runner_;  // null: to be started
  bool session_in_runner_ = false;      // the runner has the session's buffers
  std::optional<ProbeKernels> probe_;
  std::optional<Session> session_;
  bool quarantined_ = false;
  std::string quarantine_reason_;
  BusyClock busy_;
};

absl::Status LocalWorkbench::Quarantine(std::string reason) {
  quarantined_ = true;
  quarantine_reason_ = std::move(reason);
  runner_.reset();
  return absl::UnavailableError(absl::StrCat("device lost: ", quarantine_reason_));
}

// The reference and, on a GPU, the check.
std::vector<v1::BuildTask> LocalWorkbench::SessionTasks(const Workload& workload) const {
  v1::BuildTask task;
  task.set_workload_text(workload.canonical_text());
  task.set_target_text(device_.target.ToString());
  std::vector<v1::BuildTask> tasks = {task};
  tasks[0].set_reference_u_acc(AccumulatorRoundoff(workload));
  if (device_.target.is_gpu()) {
    task.set_device_check(true);
    tasks.push_back(task);
  }
  return tasks;
}

// What every session has, a probe's too: the device and the kernels of SessionTasks.
absl::Status LocalWorkbench::AddKernels(const Workload& workload, absl::Duration timeout,
                                        children::OpenSession* request) {
  request->set_target_text(device_.target.ToString());
  request->set_device_uuid(device_.uuid);
  request->set_timer(device_.timer);
  request->set_cores(host_cores_);
  std::vector<v1::BuiltKernel> built = ahead_.Session(workload);
  if (built.empty()) {
    built = BuildAll(SessionTasks(workload), timeout);
    if (ahead_.Begin(workload)) ahead_.KeepSession(workload, built);
  }
  if (built[0].has_failure()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the reference kernel cannot be built: ", built[0].failure().text()));
  }
  *request->mutable_reference() = std::move(built[0]);
  if (built.size() == 1) return absl::OkStatus();
  if (built[1].has_failure()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the check's kernels cannot be built: ", built[1].failure().text()));
  }
  *request->mutable_device_check() = std::move(built[1]);
  return absl::OkStatus();
}

absl::StatusOr<children::OpenSession> LocalWorkbench::DescribeSession(const SessionSpec& spec) {
  const bool dependent = spec.regime.chain == Regime::Chain::kDependent;
  if (dependent && !device_.target.is_gpu()) {
    return absl::InvalidArgumentError(
        "regime: chain=dependent is for GPUs; a CPU accepts chain=plain");
  }
  if (absl::Status status = spec.workload.CheckSizes(spec.regime.at); !status.ok()) return status;
  const Target& target = device_.target;
  const bool cold = spec.regime.cache == Regime::Cache::kCold;
  children::OpenSession request;
  request.set_workload_text(spec.workload.canonical_text());
  for (int64_t size : spec.regime.at) request.add_at_sizes(size);
  request.set_warm(!cold);
  request.set_input_seed(spec.input_seed);
  request.set_dependent(dependent);
  // A warm session still checks a few different sets.
  request.set_rotation_bytes(
      cold ? static_cast<int64_t>(std::ceil(kRotation * LastLevelBytes(target))) : 1);
  request.set_limit_seconds(LimitSeconds(target, spec.workload.Operations(spec.regime.at),
                                         spec.workload.CompulsoryBytes(spec.regime.at),
                                         spec.workload.SmallestParameterBytes(), cold));
  if (absl::Status status = AddKernels(spec.workload, spec.build_timeout, &request); !status.ok()) {
    return status;
  }
  return request;
}

absl::Status LocalWorkbench::StartRunner() {
  session_in_runner_ = false;
  absl::StatusOr<std::unique_ptr<RunnerLink>> runner = RunnerLink::Start(options_.executable);
  if (!runner.ok()) return Quarantine(std::string(runner.status().message()));
  runner_ = *std::move(runner);
  return absl::OkStatus();
}

// Sends the session to the runner. FailedPrecondition: the workload cannot be measured.
absl::Status LocalWorkbench::OpenInRunner() {
  children::RunnerRequest request;
  *request.mutable_open() = session_->request;
  const RunnerLink::Answer answer = runner_->Ask(request, kOpenStepTimeout);
  if (!answer.reply) {
    HandleDeath(answer);
    if (quarantined_) return absl::UnavailableError(quarantine_reason_);
    return absl::FailedPreconditionError(
        absl::StrCat("making the references failed: ", std::string(Info(answer.failure.kind).name),
                     ": ", answer.failure.text));
  }
  const children::SessionOpened& opened = answer.reply->opened();
  if (opened.status_code() != 0) {
    return absl::Status(static_cast<absl::StatusCode>(opened.status_code()), opened.status_text());
  }
  session_->state.reference_time = absl::Seconds(opened.reference_seconds());
  session_in_runner_ = true;
  return absl::OkStatus();
}

// A runner with the session's buffers and a current anchor, ready for a candidate.
absl::Status LocalWorkbench::ReadyRunner() {
  if (quarantined_) return absl::UnavailableError(quarantine_reason_);
  if (!runner_) {
    if (absl::Status status = StartRunner(); !status.ok()) return status;
  }
  if (!session_in_runner_) {
    if (absl::Status status = OpenInRunner(); !status.ok()) return status;
  }
  return TimeAnchorIfDue();
}

// The runner has ended. Starts a new one and probes the device with a kernel known to be good.
void LocalWorkbench::HandleDeath(const RunnerLink::Answer& answer) {
  runner_.reset();
  session_in_runner_ = false;
  if (session_) session_->anchor_due = true;
  if (!answer.killed) {
    (void)Quarantine("a runner could not be killed and may still hold the device");
    return;
  }
  if (const absl::Status status = Probe(); !status.ok() && !quarantined_) {
    (void)Quarantine(std::string(status.message()));
  }
}

absl::Status LocalWorkbench::PrepareProbe() {
  if (probe_) return absl::OkStatus();
  WorkloadOptions options;
  options.sizes = kProbeSizes;
  options.types = "f32";
  absl::StatusOr<Workload> workload = Workload::Make(kProbeExpression, options);
  if (!workload.ok()) return workload.status();
  absl::StatusOr<std::shared_ptr<const ScheduleSpace>> space =
      ScheduleSpace::Make(*workload, device_.target, AllVariants());
  if (!space.ok()) return space.status();
  const Schedule schedules[] = {(*space)->NaiveSchedule()};
  const std::vector<BuildOutcome> built = Build(*workload, schedules, kProbeTimeout);
  if (built[0].failure) return absl::InternalError(built[0].failure->text);
  ProbeKernels probe;
  probe.kernel = MessageOf(*built[0].kernel);
  probe.open.set_workload_text(workload->canonical_text());
  for (int64_t size : workload->HighestSizes()) probe.open.add_at_sizes(size);
  probe.open.set_input_seed(1);
  if (absl::Status status = AddKernels(*workload, kProbeTimeout, &probe.open); !status.ok()) {
    return status;
  }
  probe_ = std::move(probe);
  return absl::OkStatus();
}

absl::Status LocalWorkbench::Probe() {
  if (absl::Status status = PrepareProbe(); !status.ok()) return status;
  if (absl::Status status = StartRunner(); !status.ok()) return status;
  children::RunnerRequest request;
  *request.mutable_open() = probe_->open;
  RunnerLink::Answer answer = runner_->Ask(request, kProbeTimeout);
  if (!answer.reply) return absl::UnavailableError(answer.failure.text);
  if (answer.reply->opened().status_code() != 0) {
    return absl::UnavailableError(answer.reply->opened().status_text());
  }
  *request.mutable_screen()->mutable_kernel() = probe_->kernel;
  answer = runner_->Ask(request, kProbeTimeout);
  if (!answer.reply) return absl::UnavailableError(answer.failure.text);
  if (answer.reply->screened().has_failure()) {
    return absl::UnavailableError(absl::StrCat("a kernel known to be good fails: ",
                                               answer.reply->screened().failure().text()));
  }
  return absl::OkStatus();
}

absl::Status LocalWorkbench::OpenSession(const SessionSpec& spec) {
  const BusyStretch busy(&busy_);
  session_.reset();
  session_in_runner_ = false;
  if (quarantined_) return absl::UnavailableError(quarantine_reason_);
  absl::StatusOr<children::OpenSession> request = DescribeSession(spec);
  if (!request.ok()) return request.status();
  session_.emplace(spec);
  session_->request = *std::move(request);
  session_->state.id = NewRandomId();
  absl::Status status = ReadyRunner();
  if (status.ok()) status = ChooseAnchor();
  if (!status.ok()) session_.reset();
  return status;
}

// The spec's anchor; if it fails to build, run or check, the default, then naive.
absl::Status LocalWorkbench::ChooseAnchor() {
  const Workload& workload = session_->spec.workload;
  std::vector<Schedule> candidates = {session_->spec.anchor};
  absl::StatusOr<std::shared_ptr<const ScheduleSpace>> space =
      ScheduleSpace::Make(workload, device_.target, AllVariants());
  if (space.ok()) {
    for (const Schedule& fallback : {(*space)->DefaultSchedule(), (*space)->NaiveSchedule()}) {
      if (std::find(candidates.begin(), candidates.end(), fallback) == candidates.end()) {
        candidates.push_back(fallback);
      }
    }
  }
  SessionState& state = session_->state;
  for (const Schedule& candidate : candidates) {
    const std::vector<BuildOutcome> built =
        Build(workload, absl::MakeConstSpan(&candidate, 1), session_->spec.build_timeout);
    std::optional<CandidateFailure> failure = built[0].failure;
    if (!failure) {
      if (absl::Status status = ReadyRunner(); !status.ok()) return status;
      const ScreenOutcome outcome = TimeAnchor(*built[0].kernel);
      failure = outcome.failure;
      if (!failure) {
        state.anchor = candidate;
        state.anchor_seconds.push_back(outcome.seconds);
        session_->anchor_kernel = *built[0].kernel;
        session_->anchor_due = false;
        return absl::OkStatus();
      }
    }
    if (quarantined_) return absl::UnavailableError(quarantine_reason_);
    failure->text = absl::StrCat(candidate.ToString(), ": ", failure->text);
    state.anchor_failures.push_back(*failure);
  }
  std::vector<std::string> texts;
  for (const CandidateFailure& failure : state.anchor_failures) {
    texts.push_back(absl::StrCat(std::string(Info(failure.kind).name), ": ", failure.text));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("no anchor can be measured, not even naive: ", absl::StrJoin(texts, "; ")));
}

absl::Status LocalWorkbench::TimeAnchorIfDue() {
  Session& session = *session_;
  if (session.state.anchor_seconds.empty()) return absl::OkStatus();  // being chosen
  if (!session.anchor_due && session.trials_since_anchor < kTrialsBetweenAnchors) {
    return absl::OkStatus();
  }
  // The anchor passed before, in this session. One failure may be the machine's mood; two mean that
  // the device is not what it was.
  std::string text;
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (!session_in_runner_) {
      if (absl::Status status = OpenInRunner(); !status.ok()) return status;
    }
    const ScreenOutcome outcome = TimeAnchor(session.anchor_kernel);
    if (!outcome.failure) {
      session.state.anchor_seconds.push_back(outcome.seconds);
      session.anchor_due = false;
      session.trials_since_anchor = 0;
      return absl::OkStatus();
    }
    if (quarantined_) return absl::UnavailableError(quarantine_reason_);
    text = outcome.failure->text;
  }
  return Quarantine(absl::StrCat("the session's anchor, measured before, now fails twice: ", text));
}

ScreenOutcome LocalWorkbench::ScreenInRunner(const Kernel& kernel, double anchor_seconds) {
  ScreenOutcome outcome;
  children::RunnerRequest request;
  children::ScreenKernel* screen = request.mutable_screen();
  *screen->mutable_kernel() = MessageOf(kernel);
  screen->set_anchor_seconds(anchor_seconds);
  screen->set_seed(MixBits(session_->spec.input_seed) + 2 * session_->screenings++);
  const RunnerLink::Answer answer = runner_->Ask(request, StepTimeout());
  if (!answer.reply) {
    outcome.failure = answer.failure;
    HandleDeath(answer);
    return outcome;
  }
  const children::KernelScreened& screened = answer.reply->screened();
  outcome.samples_seconds.assign(screened.samples_seconds().begin(),
                                 screened.samples_seconds().end());
  outcome.device_time = absl::Nanoseconds(screened.device_ns());
  outcome.check_json = screened.check_json();
  if (screened.has_failure()) {
    outcome.failure = FailureOf(screened.failure());
  } else {
    outcome.seconds = Median(outcome.samples_seconds);
  }
  return outcome;
}

// The last of several screenings, with the median of their times; the first failure ends them.
ScreenOutcome LocalWorkbench::TimeAnchor(const Kernel& kernel) {
  ScreenOutcome outcome;
  std::vector<double> seconds;
  while (seconds.size() < kAnchorTimings) {
    outcome = ScreenInRunner(kernel, 0);
    if (outcome.failure) return outcome;
    seconds.push_back(outcome.seconds);
  }
  outcome.seconds = Median(std::move(seconds));
  return outcome;
}

ScreenOutcome LocalWorkbench::Screen(const Schedule& schedule, const Kernel& kernel) {
  const BusyStretch busy(&busy_);
  ScreenOutcome outcome;
  if (absl::Status status = ReadyRunner(); !status.ok()) {
    outcome.failure = {FailureKind::kDeviceLost, std::string(status.message())};
    return outcome;
  }
  const double anchor_seconds = session_->state.anchor_seconds.back();
  outcome = ScreenInRunner(kernel, anchor_seconds);
  outcome.anchor_seconds = anchor_seconds;
  ++session_->trials_since_anchor;
  return outcome;
}

FinalsOutcome LocalWorkbench::Finals(absl::Span<const Kernel> kernels, int rounds,
                                     absl::Duration idle, uint64_t order_seed) {
  const BusyStretch busy(&busy_);
  FinalsOutcome outcome;
  outcome.entrants.resize(kernels.size());
  // An entrant that ends the runner is out, and the others start anew.
  for (;;) {
    std::vector<size_t> running;
    children::RunnerRequest request;
    children::RunFinals* finals = request.mutable_finals();
    for (size_t e = 0; e < kernels.size(); ++e) {
      if (outcome.entrants[e].failure) continue;
      running.push_back(e);
      *finals->add_kernels() = MessageOf(kernels[e]);
    }
    if (running.empty()) return outcome;
    finals->set_rounds(rounds);
    finals->set_idle_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(idle)));
    finals->set_order_seed(order_seed);
    if (absl::Status status = ReadyRunner(); !status.ok()) {
      for (size_t e : running) {
        outcome.entrants[e].failure = {FailureKind::kDeviceLost, std::string(status.message())};
      }
      return outcome;
    }
    const RunnerLink::Answer answer = runner_->Ask(request, StepTimeout() + idle);
    if (!answer.reply) {
      const size_t guilty = std::clamp<size_t>(answer.entrant, 0, running.size() - 1);
      outcome.entrants[running[guilty]].failure = answer.failure;
      HandleDeath(answer);
      continue;
    }
    for (size_t i = 0;
         i < running.size() && static_cast<int>(i) < answer.reply->finals().entrants_size(); ++i) {
      const children::FinalsDone::Entrant& entrant = answer.reply->finals().entrants(i);
      FinalsOutcome::Entrant& out = outcome.entrants[running[i]];
      out.round_seconds.assign(entrant.round_seconds().begin(), entrant.round_seconds().end());
      out.check_json = entrant.check_json();
      if (entrant.has_failure()) out.failure = FailureOf(entrant.failure());
    }
    return outcome;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Workbench>> Workbench::Make(const DeviceDescription& device,
                                                           const WorkbenchOptions& options) {
  if (device.target.backend != "host" && !device.target.is_gpu()) {
    return absl::UnimplementedError(absl::StrCat("no workbench for devices of backend '",
                                                 device.target.backend,
                                                 "'; there is one for host and one for nvptx"));
  }
  WorkbenchOptions own = options;
  if (own.executable.empty()) own.executable = "/proc/self/exe";
  return std::make_unique<LocalWorkbench>(device, std::move(own));
}

}  // namespace tilewright
