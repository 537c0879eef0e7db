#include "measure/runner_link.h"

#include <signal.h>

#include <fstream>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "measure/crash_report.h"

namespace tilewright {
namespace {

// Of all processes since the system started, those in memory control groups included
// (proc_vmstat(5), since Linux 4.13).
std::optional<int64_t> KillsForLackOfMemory() {
  std::ifstream file("/proc/vmstat");
  std::string name;
  int64_t count = 0;
  while (file >> name >> count) {
    if (name == "oom_kill") return count;
  }
  return std::nullopt;
}

}  // namespace

RunnerLink::RunnerLink(std::unique_ptr<ChildProcess> child)
    : child_(std::move(child)), kills_before_(KillsForLackOfMemory()) {}

absl::StatusOr<std::unique_ptr<RunnerLink>> RunnerLink::Start(const std::string& executable) {
  absl::StatusOr<std::unique_ptr<ChildProcess>> child = ChildProcess::Spawn(executable, {"runner"});
  if (!child.ok()) return child.status();
  return std::unique_ptr<RunnerLink>(new RunnerLink(*std::move(child)));
}

RunnerLink::Answer RunnerLink::Ask(const children::RunnerRequest& request,
                                   absl::Duration step_timeout) {
  children::Progress last;
  if (absl::Status status = child_->Send(request, kFrameSendTimeout); !status.ok()) {
    return Ended(status, step_timeout, last);
  }
  for (;;) {
    absl::StatusOr<Frame> frame = child_->Receive(step_timeout);
    if (!frame.ok()) return Ended(frame.status(), step_timeout, last);
    if (frame->kind == FrameKind::kCrash) {
      Answer answer;
      const absl::StatusOr<CrashRecord> record = ParseCrashRecord(frame->payload);
      answer.failure = record.ok() ? DescribeCrash(*record)
                                   : CandidateFailure{FailureKind::kCrashed,
                                                      std::string(record.status().message())};
      answer.entrant = record.ok() ? record->entrant : last.entrant();
      answer.killed = child_->Stop(kChildEndPatience).reaped;
      return answer;
    }
    children::RunnerReply reply;
    if (!reply.ParseFromString(frame->payload) ||
        reply.reply_case() == children::RunnerReply::REPLY_NOT_SET) {
      return Ended(absl::InternalError("it sent nonsense"), step_timeout, last);
    }
    if (reply.has_ended()) {
      Answer answer;
      const absl::StatusOr<FailureKind> kind = ParseFailureKind(reply.ended().failure().kind());
      answer.failure = {kind.ok() ? *kind : FailureKind::kCrashed, reply.ended().failure().text()};
      answer.entrant = reply.ended().entrant();
      answer.killed = child_->Stop(kChildEndPatience).reaped;
      return answer;
    }
    if (!reply.has_progress()) {
      Answer answer;
      answer.reply = std::move(reply);
      return answer;
    }
    last = reply.progress();
  }
}

RunnerLink::Answer RunnerLink::Ended(const absl::Status& status, absl::Duration step_timeout,
                                     const children::Progress& last) {
  Answer answer;
  answer.entrant = last.entrant();
  const std::string when = absl::StrCat(" (", last.phase(), ")");
  if (absl::IsDeadlineExceeded(status)) {
    answer.killed = child_->Stop(absl::ZeroDuration()).reaped;
    answer.failure = {FailureKind::kRunTimeout,
                      absl::StrCat("no end after ", absl::FormatDuration(step_timeout), when)};
    return answer;
  }
  const ChildProcess::Exit exit = child_->Stop(kChildEndPatience);
  answer.killed = exit.reaped;
  answer.failure = {FailureKind::kCrashed,
                    absl::StrCat("the runner ended: ", exit.ToString(), when)};
  if (exit.signal == SIGKILL && absl::IsUnavailable(status)) {
    // A candidate cannot send it: the system does when memory runs out, else it came from outside.
    const std::optional<int64_t> kills = KillsForLackOfMemory();
    const bool outside = kills.has_value() && kills == kills_before_;
    answer.failure.kind = outside ? FailureKind::kDeviceLost : FailureKind::kOutOfMemory;
    if (outside) absl::StrAppend(&answer.failure.text, "; not for lack of memory");
  }
  if (!absl::IsUnavailable(status)) {
    absl::StrAppend(&answer.failure.text, ": ", status.message());
  }
  return answer;
}

}  // namespace tilewright
