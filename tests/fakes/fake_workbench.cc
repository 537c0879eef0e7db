#include "tests/fakes/fake_workbench.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "measure/protocol.h"

namespace tilewright {
namespace {

int64_t Number(const Schedule& schedule, const char* name, int64_t otherwise) {
  const std::string* token = schedule.Find(name);
  int64_t number = otherwise;
  if (token != nullptr && !absl::SimpleAtoi(*token, &number)) return otherwise;
  return number;
}

CandidateFailure FailureNamed(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  absl::StatusOr<FailureKind> kind = ParseFailureKind(name);
  return {kind.value_or(FailureKind::kCrashed), absl::StrCat("scripted: ", name)};
}

class FakeWorkbench : public Workbench {
 public:
  explicit FakeWorkbench(FakeBenchLog* log) : log_(log) {}

  bool builds_ahead() const override { return log_ != nullptr && log_->builds_ahead; }
  std::vector<BuildOutcome> Build(const Workload&, absl::Span<const Schedule> schedules,
                                  absl::Duration) override {
    std::vector<BuildOutcome> outcomes(schedules.size());
    if (log_ != nullptr) log_->CountBuilds(static_cast<int>(schedules.size()));
    for (size_t i = 0; i < schedules.size(); ++i) {
      outcomes[i].build_time = absl::Milliseconds(1);
      if (const std::string* failure = schedules[i].Find("build"); failure != nullptr) {
        outcomes[i].failure = FailureNamed(*failure);
        continue;
      }
      Kernel kernel;
      const std::string* digest = schedules[i].Find("digest");
      kernel.digests.binary = digest != nullptr ? *digest : schedules[i].ToString();
      kernel.launches.resize(1);
      kernel.launches[0].entry = schedules[i].ToString();
      kernel.resources = {{"code_bytes", 64}};
      outcomes[i].kernel = std::move(kernel);
    }
    return outcomes;
  }

  absl::Status OpenSession(const SessionSpec& spec) override {
    if (log_ != nullptr && log_->open_session != nullptr) {
      absl::Status status = log_->open_session(spec);
      if (!status.ok()) return status;
    }
    state_ = {};
    state_.id = NewRandomId();
    state_.anchor = spec.anchor;
    state_.anchor_seconds = {Number(spec.anchor, "us", 100) * 1e-6};
    screens_ = 0;
    return absl::OkStatus();
  }

  const SessionState& session() const override { return state_; }

  ScreenOutcome Screen(const Schedule& schedule, const Kernel&) override {
    if (log_ != nullptr) log_->CountScreen(schedule.ToString());
    if (++screens_ % 30 == 0) state_.anchor_seconds.push_back(state_.anchor_seconds[0]);
    if (const std::string* mark = schedule.Find("die"); mark != nullptr) {
      const bool always = *mark == "always";
      if (always || open(mark->c_str(), O_CREAT | O_EXCL | O_CLOEXEC, 0600) >= 0) {
        kill(getpid(), SIGKILL);
      }
    }
    const absl::Duration time = absl::Milliseconds(Number(schedule, "sleep_ms", 0));
    absl::SleepFor(time);
    busy_ns_ += absl::ToInt64Nanoseconds(time);
    ScreenOutcome outcome;
    outcome.device_time = time;
    outcome.anchor_seconds = state_.anchor_seconds[0];
    if (Number(schedule, "lost", 0) != 0) {
      quarantined_ = true;
      outcome.failure = CandidateFailure{FailureKind::kDeviceLost, "scripted"};
    } else if (const std::string* failure = schedule.Find("fail"); failure != nullptr) {
      outcome.failure = FailureNamed(*failure);
    } else {
      outcome.seconds = Number(schedule, "us", 100) * 1e-6;
      outcome.samples_seconds = {outcome.seconds, outcome.seconds};
      outcome.check_json = R"({"sets": 1})";
    }
    return outcome;
  }

  FinalsOutcome Finals(absl::Span<const Kernel> kernels, int rounds, absl::Duration,
                       uint64_t) override {
    FinalsOutcome outcome;
    for (const Kernel& kernel : kernels) {
      FinalsOutcome::Entrant entrant;
      absl::StatusOr<Schedule> schedule = ParseSchedule(kernel.launches[0].entry);
      const double seconds = schedule.ok() ? Number(*schedule, "us", 100) * 1e-6 : 1;
      entrant.round_seconds.assign(rounds, seconds);
      outcome.entrants.push_back(std::move(entrant));
    }
    return outcome;
  }

  absl::Duration busy() const override { return absl::Nanoseconds(busy_ns_.load()); }
  bool quarantined() const override { return quarantined_; }

 private:
  FakeBenchLog* const log_;
  SessionState state_;
  std::atomic<int64_t> busy_ns_{0};
  int screens_ = 0;
  bool quarantined_ = false;
};

}  // namespace

void FakeBenchLog::CountScreen(const std::string& schedule) {
  std::scoped_lock lock(mutex_);
  ++screens_[schedule];
  most_ahead_ = std::max(most_ahead_, built_ - screened_++);
}

void FakeBenchLog::CountBuilds(int count) {
  std::lock_guard<std::mutex> lock(mutex_);
  built_ += count;
}

int FakeBenchLog::most_built_ahead() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return most_ahead_;
}

int FakeBenchLog::screens(const std::string& schedule) const {
  std::scoped_lock lock(mutex_);
  auto it = screens_.find(schedule);
  return it == screens_.end() ? 0 : it->second;
}

int FakeBenchLog::screens() const {
  std::scoped_lock lock(mutex_);
  int all = 0;
  for (const auto& [schedule, count] : screens_) all += count;
  return all;
}

std::unique_ptr<Workbench> NewFakeWorkbench(FakeBenchLog* log) {
  return std::make_unique<FakeWorkbench>(log);
}

Target FakeTarget() {
  Target target;
  target.kind = "cpu:fake/avx2/2";
  target.backend = "host";
  target.llvm_cpu = "x86-64-v3";
  target.llvm_features = "+avx2,+fma";
  target.cores = 2;
  return target;
}

WorkerParts FakeWorkerParts(int device, FakeBenchLog* log) {
  WorkerParts parts{{absl::StrCat("fake-device-", device), FakeTarget(), "clock", "fake driver"},
                    kFakeToolchain,
                    nullptr};
  parts.make_workbench = [log]() -> absl::StatusOr<std::unique_ptr<Workbench>> {
    return NewFakeWorkbench(log);
  };
  return parts;
}

v1::RunSpec FakeRunSpec(const std::string& run_id) {
  WorkloadOptions options;
  options.sizes = "m=8 n=8 k=8";
  options.types = "f32";
  absl::StatusOr<Workload> workload = Workload::Make("C[m,n] = sum(k: A[m,k] * B[k,n])", options);
  v1::RunSpec spec;
  spec.set_run_id(run_id);
  spec.set_workload_text(workload.ok() ? workload->canonical_text()
                                       : std::string(workload.status().message()));
  spec.set_target_text(FakeTarget().ToString());
  spec.set_regime_text("cache=cold chain=plain data=normal");
  spec.set_anchor_schedule("fake{us=100}");
  spec.set_input_seed(1);
  spec.set_build_timeout_ms(1000);
  spec.set_run_timeout_ms(1000);
  return spec;
}

}  // namespace tilewright
