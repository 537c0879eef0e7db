// The runner: the one process that calls kernels. It answers requests on descriptor 3 until that
// closes; whatever a kernel does to it, its parent survives and starts another.
#include <unistd.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "measure/child_process.h"
#include "measure/children.h"
#include "measure/children.pb.h"
#include "measure/crash_report.h"
#include "measure/frames.h"
#include "measure/runner_session.h"
#include "schedule/target.h"

namespace tilewright {
namespace {

// How a device of each backend is opened.
struct DeviceRow {
  const char* backend;
  std::unique_ptr<RunnerDevice> (*make)();
};
constexpr DeviceRow kDevices[] = {{"host", NewCpuRunnerDevice}, {"nvptx", NewCudaRunnerDevice}};

class Runner {
 public:
  int Serve() {
    for (;;) {
      children::RunnerRequest request;
      const absl::Status received =
          ReceiveMessage(kChildDescriptor, &request, absl::InfiniteDuration());
      if (absl::IsUnavailable(received)) return kChildExitFine;
      if (!received.ok()) return kChildExitBadParent;
      const children::RunnerReply reply = Answer(request);
      if (device_) device_->SetActive(false);
      if (!SendMessage(kChildDescriptor, reply, kFrameSendTimeout).ok()) return kChildExitBadParent;
    }
  }

 private:
  children::RunnerReply Answer(const children::RunnerRequest& request) {
    children::RunnerReply reply;
    if (device_) device_->SetActive(true);
    switch (request.request_case()) {
      case children::RunnerRequest::kOpen:
        *reply.mutable_opened() = Open(request.open());
        break;
      case children::RunnerRequest::kScreen:
        if (session_) *reply.mutable_screened() = session_->Screen(request.screen());
        break;
      case children::RunnerRequest::kFinals:
        if (session_) *reply.mutable_finals() = session_->Finals(request.finals());
        break;
      case children::RunnerRequest::REQUEST_NOT_SET:
        break;
    }
    return reply;  // empty: the request made no sense, which the parent sees
  }

  children::SessionOpened Open(const children::OpenSession& request) {
    children::SessionOpened opened;
    session_.reset();
    absl::StatusOr<std::unique_ptr<RunnerSession>> session = OpenOn(request);
    opened.set_status_code(static_cast<int>(session.status().code()));
    opened.set_status_text(std::string(session.status().message()));
    if (session.ok()) {
      session_ = *std::move(session);
      opened.set_reference_seconds(session_->reference_seconds());
      opened.set_sets(session_->sets());
    }
    return opened;
  }

  absl::StatusOr<std::unique_ptr<RunnerSession>> OpenOn(const children::OpenSession& request) {
    const absl::StatusOr<Target> target = ParseTarget(request.target_text());
    if (!target.ok()) return target.status();
    if (!device_ || backend_ != target->backend) {
      device_.reset();
      for (const DeviceRow& row : kDevices) {
        if (row.backend == target->backend) device_ = row.make();
      }
      backend_ = target->backend;
    }
    if (!device_) {
      return absl::UnimplementedError(
          absl::StrCat("no runner for devices of backend '", target->backend, "'"));
    }
    return device_->Open(
        request, {[](const std::string& phase, int entrant) { Tell(phase, entrant); },
                  [](const CandidateFailure& failure, int entrant) { End(failure, entrant); }});
  }

  static void Tell(const std::string& phase, int entrant) {
    children::RunnerReply reply;
    reply.mutable_progress()->set_phase(phase);
    reply.mutable_progress()->set_entrant(entrant);
    // A parent that is gone shows when the answer is sent.
    (void)SendMessage(kChildDescriptor, reply, kFrameSendTimeout);
  }

  // Without destructors: what they would free belongs to a device that no longer answers.
  static void End(const CandidateFailure& failure, int entrant) {
    children::RunnerReply reply;
    SetFailure(failure, reply.mutable_ended()->mutable_failure());
    reply.mutable_ended()->set_entrant(entrant);
    (void)SendMessage(kChildDescriptor, reply, kFrameSendTimeout);
    _exit(kChildExitFine);
  }

  std::string backend_;
  std::unique_ptr<RunnerDevice> device_;
  std::unique_ptr<RunnerSession> session_;
};

}  // namespace

int RunnerMain() {
  EnterChild();
  InstallCrashHandler();
  return Runner().Serve();
}

}  // namespace tilewright
