#include "codegen/compiler_child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

extern char** environ;

namespace tilewright {
namespace {

constexpr size_t kMostLogBytes = size_t{1} << 20;

// A file descriptor that is closed with its owner.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { Close(); }
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  void Reset(int fd) {
    Close();
    fd_ = fd;
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

absl::Status SystemError(absl::string_view what, int error) {
  return absl::InternalError(absl::StrCat(what, ": ", std::strerror(error)));
}

absl::Status WriteAll(int fd, const std::string& bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t written = write(fd, bytes.data() + done, bytes.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return SystemError("writing a compiler's input", errno);
    done += static_cast<size_t>(written);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadWhole(int fd) {
  struct stat facts;
  if (fstat(fd, &facts) != 0) return SystemError("reading a compiler's output", errno);
  std::string bytes(static_cast<size_t>(facts.st_size), '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count =
        pread(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return SystemError("reading a compiler's output", count < 0 ? errno : EIO);
    done += static_cast<size_t>(count);
  }
  return bytes;
}

// Reads the child's log until it closes its end; false at the deadline.
bool ReadLog(int fd, absl::Time end, std::string* log) {
  char buffer[4096];
  for (;;) {
    const int64_t left = absl::ToInt64Milliseconds(end - absl::Now());
    if (left <= 0) return false;
    pollfd waiting = {fd, POLLIN, 0};
    const int ready = poll(&waiting, 1, static_cast<int>(std::min<int64_t>(left, 60'000)));
    if (ready < 0 && errno != EINTR) return true;
    if (ready <= 0) continue;
    const ssize_t count = read(fd, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return true;
    log->append(buffer, std::min(static_cast<size_t>(count), kMostLogBytes - log->size()));
  }
}

// Reaps the child; one that closed its log and does not end is killed at the deadline.
int Reap(pid_t pid, absl::Time end, bool* killed) {
  int status = 0;
  for (;;) {
    const pid_t done = waitpid(pid, &status, *killed ? 0 : WNOHANG);
    if (done == pid) return status;
    if (done < 0 && errno != EINTR) return status;
    if (*killed) continue;
    if (absl::Now() >= end) {
      kill(pid, SIGKILL);
      *killed = true;
    } else {
      absl::SleepFor(absl::Microseconds(200));
    }
  }
}

}  // namespace

absl::StatusOr<CompilerRun> RunCompiler(const std::string& program,
                                        const std::vector<std::string>& arguments,
                                        const std::string& input, absl::Duration deadline) {
  const absl::Time end = absl::Now() + deadline;
  Descriptor source(memfd_create("source", MFD_CLOEXEC));
  Descriptor result(memfd_create("result", MFD_CLOEXEC));
  int ends[2];
  if (source.get() < 0 || result.get() < 0 || pipe2(ends, O_CLOEXEC) != 0)
    return SystemError(absl::StrCat("starting ", program), errno);
  Descriptor log_read(ends[0]);
  Descriptor log_write(ends[1]);
  if (absl::Status status = WriteAll(source.get(), input); !status.ok()) return status;

  // The child's descriptors 0 to 4. Ours may have those numbers too, so they first move out of the
  // way; dup2 of a number onto itself would leave it closed on exec.
  constexpr int kOutOfTheWay = 16;
  Descriptor moved[3];
  const int wanted[3] = {source.get(), result.get(), log_write.get()};
  for (int i = 0; i < 3; ++i) {
    moved[i].Reset(fcntl(wanted[i], F_DUPFD_CLOEXEC, kOutOfTheWay));
    if (moved[i].get() < 0) return SystemError(absl::StrCat("starting ", program), errno);
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, moved[2].get(), 1);
  posix_spawn_file_actions_adddup2(&actions, moved[2].get(), 2);
  posix_spawn_file_actions_adddup2(&actions, moved[0].get(), 3);
  posix_spawn_file_actions_adddup2(&actions, moved[1].get(), 4);
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, program.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return SystemError(absl::StrCat("starting ", program), error);
  log_write.Close();
  for (Descriptor& descriptor : moved) descriptor.Close();

  CompilerRun run;
  bool killed = !ReadLog(log_read.get(), end, &run.log);
  if (killed) kill(pid, SIGKILL);
  const int status = Reap(pid, end, &killed);
  if (killed) {
    return absl::DeadlineExceededError(
        absl::StrCat(program, " did not end within ", absl::FormatDuration(deadline)));
  }
  if (!WIFEXITED(status)) {
    return absl::InternalError(
        absl::StrCat(program, " was ended by signal ", WTERMSIG(status), ": ", run.log));
  }
  run.exit_code = WEXITSTATUS(status);
  auto output = ReadWhole(result.get());
  if (!output.ok()) return output.status();
  run.output = *std::move(output);
  return run;
}

}  // namespace tilewright
