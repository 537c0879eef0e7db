#include "measure/child_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

extern char** environ;

namespace tilewright {
namespace {

// A process that SIGKILL does not end within this time is left to the system (a hung device
// driver).
constexpr absl::Duration kKillPatience = absl::Seconds(10);

// Owns the two attribute objects posix_spawn wants.
struct SpawnSettings {
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_t actions;
  SpawnSettings() {
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_init(&actions);
  }
  ~SpawnSettings() {
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
  }
};

void Describe(int child_end, SpawnSettings* settings) {
  sigset_t defaults;
  sigemptyset(&defaults);
  for (int signal : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&defaults, signal);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigdefault(&settings->attributes, &defaults);
  posix_spawnattr_setsigmask(&settings->attributes, &none);
  posix_spawnattr_setpgroup(&settings->attributes, 0);
  posix_spawnattr_setflags(&settings->attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  posix_spawn_file_actions_addopen(&settings->actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&settings->actions, 1, "/dev/null", O_WRONLY, 0);
  // Also clears close-on-exec when the two are the same descriptor.
  posix_spawn_file_actions_adddup2(&settings->actions, child_end, kChildDescriptor);
  posix_spawn_file_actions_addclosefrom_np(&settings->actions, kChildDescriptor + 1);
}

}  // namespace

std::string SignalName(int signal) {
  const char* name = sigabbrev_np(signal);
  return name != nullptr ? absl::StrCat("SIG", name) : absl::StrCat("signal ", signal);
}

std::string ChildProcess::Exit::ToString() const {
  if (!reaped) return "could not be killed";
  if (signal != 0) return absl::StrCat("killed by ", SignalName(signal));
  return absl::StrCat("exited with status ", code);
}

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Spawn(
    const std::string& executable, const std::vector<std::string>& arguments) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return absl::InternalError(absl::StrCat("socketpair: ", strerror(errno)));
  }
  SpawnSettings settings;
  Describe(ends[1], &settings);
  std::vector<char*> argv = {const_cast<char*>(executable.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, executable.c_str(), &settings.actions, &settings.attributes,
                                argv.data(), environ);
  close(ends[1]);
  if (error != 0) {
    close(ends[0]);
    return absl::InternalError(absl::StrCat("cannot start ", executable, ": ", strerror(error)));
  }
  return std::unique_ptr<ChildProcess>(new ChildProcess(pid, ends[0]));
}

ChildProcess::~ChildProcess() {
  Stop(absl::ZeroDuration());
  close(fd_);
}

bool ChildProcess::AwaitEnd(absl::Duration patience) {
  const double end = MonotonicSeconds() + absl::ToDoubleSeconds(patience);
  for (absl::Duration pause = absl::Microseconds(50);; pause *= 2) {
    siginfo_t info{};
    // Leaves the child a zombie, so that its group's number stays its own.
    const int result = waitid(P_PID, pid_, &info, WEXITED | WNOHANG | WNOWAIT);
    if (result == 0 && info.si_pid == pid_) return true;
    if (result < 0 && errno != EINTR) return true;
    if (MonotonicSeconds() >= end) return false;
    absl::SleepFor(std::min(pause, absl::Milliseconds(5)));
  }
}

ChildProcess::Exit ChildProcess::Stop(absl::Duration patience) {
  if (stopped_) return exit_;
  stopped_ = true;
  shutdown(fd_, SHUT_WR);
  AwaitEnd(patience);
  // Also ends what the child may have started. Harmless to a leader that has ended: its status is
  // kept.
  kill(-pid_, SIGKILL);
  if (!AwaitEnd(kKillPatience)) return exit_;
  int status = 0;
  exit_.reaped = true;
  if (waitpid(pid_, &status, WNOHANG) == pid_) {
    if (WIFSIGNALED(status)) exit_.signal = WTERMSIG(status);
    if (WIFEXITED(status)) exit_.code = WEXITSTATUS(status);
  }
  return exit_;
}

void EnterChild() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  fcntl(kChildDescriptor, F_SETFD, FD_CLOEXEC);
}

}  // namespace tilewright
