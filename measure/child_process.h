// A ChildProcess is a program started with a hidden command (`builder`, `runner`) in a process
// group of its own, with a socket pair to its parent on descriptor 3.
//
//   auto child = ChildProcess::Spawn("/proc/self/exe", {"runner"});
//   child->Send(request, absl::Seconds(5)); child->Receive(absl::Seconds(10));
//
// It dies with its parent (the child asks for that first thing, see EnterChild), ignores nobody's
// Ctrl-C because it is not in the terminal's group, and is never waited for without a bound. Not
// thread-safe. The thread that spawned it must outlive it: the kernel ties the parent-death signal
// to that thread.
#ifndef TILEWRIGHT_MEASURE_CHILD_PROCESS_H_
#define TILEWRIGHT_MEASURE_CHILD_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "google/protobuf/message_lite.h"
#include "measure/frames.h"

namespace tilewright {

// A frame to or from a child that is alive takes no longer than this to send.
inline constexpr absl::Duration kFrameSendTimeout = absl::Seconds(30);
// A child that closed its descriptor is on its way out; it is given this long before it is killed.
inline constexpr absl::Duration kChildEndPatience = absl::Milliseconds(500);
// Exit codes of a child whose parent closed the descriptor, and of one that could not understand or
// reach its parent.
inline constexpr int kChildExitFine = 0;
inline constexpr int kChildExitBadParent = 2;

class ChildProcess {
 public:
  // How a child ended.
  struct Exit {
    bool reaped = false;  // false: it could not be killed within the bound (state D)
    int signal = 0;       // 0: it exited by itself
    int code = 0;         // exit code, if signal is 0
    // "killed by SIGSEGV", "exited with status 1".
    std::string ToString() const;
  };

  // `arguments` follow the program's name. Internal: it could not be started.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Spawn(
      const std::string& executable, const std::vector<std::string>& arguments);
  // Kills the group.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  absl::Status Send(const google::protobuf::MessageLite& message, absl::Duration timeout) {
    return SendMessage(fd_, message, timeout);
  }
  absl::StatusOr<Frame> Receive(absl::Duration timeout) { return ReceiveFrame(fd_, timeout); }

  // Waits for a child that is ending, at most `patience`, then kills its whole group with SIGKILL,
  // and reaps it. Idempotent.
  Exit Stop(absl::Duration patience);

  int fd() const { return fd_; }
  pid_t pid() const { return pid_; }

 private:
  ChildProcess(pid_t pid, int fd) : pid_(pid), fd_(fd) {}
  // True once the child has ended; it is left to be reaped.
  bool AwaitEnd(absl::Duration patience);

  pid_t pid_;
  int fd_;
  bool stopped_ = false;
  Exit exit_;
};

// The child's first call: dies with the parent, writes no core, and keeps descriptor 3 out of
// processes it starts itself.
void EnterChild();

// "SIGSEGV"; "signal 99" for one without a name.
std::string SignalName(int signal);

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_CHILD_PROCESS_H_
