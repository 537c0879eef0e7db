#include "measure/cpu_runner_device.h"

#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "measure/crash_report.h"

namespace tilewright {
namespace {

// What kernels may allocate beyond the session's buffers: workspaces and their own hogging.
constexpr rlim_t kKernelBytes = rlim_t{8} << 30;

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

class CpuRunnerDevice : public RunnerDevice {
 public:
  absl::StatusOr<std::unique_ptr<RunnerSession>> Open(const children::OpenSession& request,
                                                      const Supervisor& supervisor) override {
    LiftMemoryLimit();
    const int cores = std::max(1, request.cores());
    if (!pool_ || pool_->threads() != cores) {
      pool_ = LaunchPool::Make(UsableCores(cores), [] { UseSignalStack(); });
    }
    pool_->SetActive(true);
    absl::StatusOr<std::unique_ptr<RunnerSession>> session =
        OpenCpuSession(request, *pool_, supervisor);
    if (session.ok()) LimitMemory();
    return session;
  }
  void SetActive(bool active) override {
    if (pool_) pool_->SetActive(active);
  }

 private:
  std::unique_ptr<LaunchPool> pool_;
};

}  // namespace

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

std::unique_ptr<RunnerDevice> NewCpuRunnerDevice() { return std::make_unique<CpuRunnerDevice>(); }

}  // namespace tilewright
