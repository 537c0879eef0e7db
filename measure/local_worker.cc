#include "measure/local_worker.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "measure/child_process.h"
#include "measure/coordinator_link.h"
#include "measure/protocol.h"
#include "measure/worker.h"

namespace tilewright {
namespace {

constexpr absl::Duration kPoll = absl::Milliseconds(50);
// Between the end of its socket and its end as a process.
constexpr absl::Duration kEndPatience = absl::Seconds(1);

// Ends after which another start would end the same way.
bool IsFinal(const ChildProcess::Exit& exit) {
  if (!exit.reaped || exit.signal != 0) return false;
  switch (static_cast<WorkerExit>(exit.code)) {
    case WorkerExit::kDrained:
    case WorkerExit::kBadInput:
    case WorkerExit::kAuthentication:
    case WorkerExit::kDeviceLost:
      return true;
    default:
      return false;
  }
}

// True once the other end of the descriptor is closed: the child has ended.
bool HungUp(int fd, absl::Duration timeout) {
  pollfd poll_fd = {fd, POLLRDHUP, 0};
  const int ready = poll(&poll_fd, 1, static_cast<int>(absl::ToInt64Milliseconds(timeout)));
  return ready > 0 && (poll_fd.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

class LocalWorkerImpl : public LocalWorker {
 public:
  explicit LocalWorkerImpl(LocalWorkerOptions options) : options_(std::move(options)) {
    // The kernel ties the parent-death signal to the thread that started the child: this one lives
    // as long as the worker.
    thread_ = std::thread([this] { Loop(); });
  }
  ~LocalWorkerImpl() override {
    {
      std::scoped_lock lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  absl::Status AwaitFirstStart() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return starts_ > 0 || !status_.ok(); });
    return status_;
  }

  absl::Status status() const override {
    std::scoped_lock lock(mutex_);
    return status_;
  }
  pid_t pid() const override {
    std::scoped_lock lock(mutex_);
    return pid_;
  }
  int starts() const override {
    std::scoped_lock lock(mutex_);
    return starts_;
  }

 private:
  bool Stopping() const {
    std::scoped_lock lock(mutex_);
    return stop_;
  }
  void SetStatus(absl::Status status) {
    std::scoped_lock lock(mutex_);
    status_ = std::move(status);
    changed_.notify_all();
  }
  // True: stopping.
  bool Pause(absl::Duration duration) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, absl::ToChronoNanoseconds(duration), [this] { return stop_; });
  }

  void Loop() {
    Backoff backoff(absl::Milliseconds(100), absl::Seconds(5));
    int in_a_row = 0;
    while (!Stopping()) {
      const absl::Time begun = absl::Now();
      absl::StatusOr<std::unique_ptr<ChildProcess>> child = Spawn();
      if (!child.ok()) return SetStatus(child.status());
      const ChildProcess::Exit exit = Attend(child->get());
      if (Stopping()) return;
      if (IsFinal(exit)) {
        if (exit.code == static_cast<int>(WorkerExit::kDrained)) return;
        return SetStatus(absl::UnavailableError(
            absl::StrCat("the local worker ", exit.ToString(), "; it is not started again")));
      }
      if (absl::Now() - begun >= options_.steady) {
        in_a_row = 0;
        backoff.Reset();
      }
      if (++in_a_row > options_.restarts) {
        return SetStatus(absl::UnavailableError(
            absl::StrCat("the local worker ", exit.ToString(), ", ", in_a_row, " times in a row")));
      }
      Pause(backoff.Next());
    }
  }

  absl::StatusOr<std::unique_ptr<ChildProcess>> Spawn() {
    std::vector<std::string> arguments = {"worker", "--connect", options_.address, "--local"};
    arguments.insert(arguments.end(), options_.flags.begin(), options_.flags.end());
    absl::StatusOr<std::unique_ptr<ChildProcess>> child =
        ChildProcess::Spawn(options_.executable, arguments);
    if (!child.ok()) return child.status();
    std::scoped_lock lock(mutex_);
    pid_ = (*child)->pid();
    ++starts_;
    changed_.notify_all();
    return child;
  }

  // Waits for the child's end; brings it about when told to stop.
  ChildProcess::Exit Attend(ChildProcess* child) {
    while (!Stopping() && !HungUp(child->fd(), kPoll)) {
    }
    if (Stopping()) {
      kill(child->pid(), SIGTERM);
      const absl::Time end = absl::Now() + options_.grace;
      while (absl::Now() < end && !HungUp(child->fd(), kPoll)) {
      }
    }
    const ChildProcess::Exit exit = child->Stop(
        HungUp(child->fd(), absl::ZeroDuration()) ? kEndPatience : absl::ZeroDuration());
    std::scoped_lock lock(mutex_);
    pid_ = 0;
    return exit;
  }

  const LocalWorkerOptions options_;
  mutable std::mutex mutex_;         // guards what follows up to thread_
  std::condition_variable changed_;  // told of every change of stop_, status_ and starts_
  bool stop_ = false;
  absl::Status status_;
  pid_t pid_ = 0;
  int starts_ = 0;
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PrivateDirectory>> PrivateDirectory::Make() {
  constexpr absl::string_view kName = "/tilewright-XXXXXX";
  const char* set = getenv("TMPDIR");
  std::string pattern = absl::StrCat(set == nullptr || set[0] != '/' ? "/tmp" : set, kName);
  if (!CheckPlaintextAddress(absl::StrCat("unix:", pattern, "/coordinator.sock")).ok()) {
    pattern = absl::StrCat("/tmp", kName);
  }
  if (mkdtemp(pattern.data()) == nullptr) {  // 0700
    return absl::InternalError(
        absl::StrCat("a private directory can't be made as ", pattern, ": ", strerror(errno)));
  }
  return std::unique_ptr<PrivateDirectory>(new PrivateDirectory(pattern));
}

PrivateDirectory::~PrivateDirectory() {
  std::error_code ignored;  // a directory that stays behind in /tmp harms nobody
  std::filesystem::remove_all(path_, ignored);
}

absl::StatusOr<std::unique_ptr<LocalWorker>> LocalWorker::Start(LocalWorkerOptions options) {
  absl::Status address = CheckPlaintextAddress(options.address);
  if (!address.ok()) return address;
  if (options.executable.empty()) options.executable = "/proc/self/exe";
  auto worker = std::make_unique<LocalWorkerImpl>(std::move(options));
  absl::Status started = worker->AwaitFirstStart();
  if (!started.ok()) return started;
  return std::unique_ptr<LocalWorker>(std::move(worker));
}

void EnterLocalWorker() {
  EnterChild();
  // The parent may have died before the signal was asked for.
  if (HungUp(kChildDescriptor, absl::ZeroDuration())) _exit(0);
}

}  // namespace tilewright
