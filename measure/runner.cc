// The runner: the one process that calls kernels. It answers requests on descriptor 3 until that
// closes; whatever a kernel does to it, its parent survives and starts another.
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "measure/child_process.h"
#include "measure/children.h"
#include "measure/children.pb.h"
#include "measure/crash_report.h"
#include "measure/frames.h"
#include "measure/launch_pool.h"
#include "measure/runner_session.h"

namespace tilewright {
namespace {

// What kernels may allocate beyond the session's buffers: workspaces and their own hogging.
constexpr rlim_t kKernelBytes = rlim_t{8} << 30;

// The first `count` of the cores this process may use.
std::vector<int> UsableCores(int count) {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    for (int core = 0; core < CPU_SETSIZE && static_cast<int>(cores.size()) < count; ++core) {
      if (CPU_ISSET(core, &set)) cores.push_back(core);
    }
  }
  if (cores.empty()) cores.push_back(0);
  return cores;
}

// Limits private writable memory to what is in use and kKernelBytes. Address space is not limited:
// guard bands reserve much of it without using any.
void LimitMemory() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    rlim_t kibibytes = 0;
    if (word != "VmData:" || !(status >> kibibytes)) continue;
    rlimit limit;
    getrlimit(RLIMIT_DATA, &limit);
    limit.rlim_cur = std::min(limit.rlim_max, kibibytes * 1024 + kKernelBytes);
    setrlimit(RLIMIT_DATA, &limit);
    return;
  }
}

void LiftMemoryLimit() {
  rlimit limit;
  getrlimit(RLIMIT_DATA, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_DATA, &limit);
}

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
      if (pool_) pool_->SetActive(false);
      if (!SendMessage(kChildDescriptor, reply, kFrameSendTimeout).ok()) return kChildExitBadParent;
    }
  }

 private:
  children::RunnerReply Answer(const children::RunnerRequest& request) {
    children::RunnerReply reply;
    if (pool_) pool_->SetActive(true);
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
    LiftMemoryLimit();
    const int cores = std::max(1, request.cores());
    if (!pool_ || pool_->threads() != cores) {
      pool_ = LaunchPool::Make(UsableCores(cores), [] { UseSignalStack(); });
    }
    pool_->SetActive(true);
    absl::StatusOr<std::unique_ptr<RunnerSession>> session = RunnerSession::Open(
        request, *pool_, [this](const std::string& phase, int entrant) { Tell(phase, entrant); });
    opened.set_status_code(static_cast<int>(session.status().code()));
    opened.set_status_text(std::string(session.status().message()));
    if (session.ok()) {
      session_ = *std::move(session);
      opened.set_reference_seconds(session_->reference_seconds());
      opened.set_sets(session_->sets());
      LimitMemory();
    }
    return opened;
  }

  void Tell(const std::string& phase, int entrant) {
    children::RunnerReply reply;
    reply.mutable_progress()->set_phase(phase);
    reply.mutable_progress()->set_entrant(entrant);
    // A parent that is gone shows when the answer is sent.
    (void)SendMessage(kChildDescriptor, reply, kFrameSendTimeout);
  }

  std::unique_ptr<LaunchPool> pool_;
  std::unique_ptr<RunnerSession> session_;
};

}  // namespace

int RunnerMain() {
  EnterChild();
  InstallCrashHandler();
  return Runner().Serve();
}

}  // namespace tilewright
