// The worker of one machine: `tune` starts it as a child that dials the coordinator in this process
// over a Unix socket in a private directory, so that one machine and a fleet share one code path.
//
//   auto directory = PrivateDirectory::Make();                     // 0700
//   … a coordinator listens on (*directory)->socket_address() …
//   auto worker = LocalWorker::Start({.address = (*directory)->socket_address()});
//
// The child has its own process group, so that only the tuner sees Ctrl-C, and dies with this
// process. If it dies it is started again after a pause; the candidate it had is leased again by
// the coordinator, at most twice. Thread-safe.
#ifndef TILEWRIGHT_MEASURE_LOCAL_WORKER_H_
#define TILEWRIGHT_MEASURE_LOCAL_WORKER_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tilewright {

// A directory that only this user may enter; removed with all that is in it. Its path is short
// enough for a socket's name.
class PrivateDirectory {
 public:
  // Below $TMPDIR, or /tmp if that is unset or too long. Internal: it can't be made.
  static absl::StatusOr<std::unique_ptr<PrivateDirectory>> Make();
  ~PrivateDirectory();
  PrivateDirectory(const PrivateDirectory&) = delete;
  PrivateDirectory& operator=(const PrivateDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string socket_address() const { return "unix:" + path_ + "/coordinator.sock"; }

 private:
  explicit PrivateDirectory(std::string path) : path_(std::move(path)) {}
  const std::string path_;
};

struct LocalWorkerOptions {
  std::string executable = {};  // empty: this program
  std::string address = {};     // of the coordinator
  // After `worker --connect ADDRESS --local`: {"--cores", "2"}.
  std::vector<std::string> flags = {};
  int restarts = 5;  // in a row, each within `steady` of its start
  absl::Duration steady = absl::Seconds(60);
  // Told to stop: how long it may take to finish its candidate, or rounds of finals, before it is
  // killed. Whoever stopped a search waits for it.
  absl::Duration grace = absl::Seconds(3);
};

class LocalWorker {
 public:
  // Internal: the child could not be started.
  static absl::StatusOr<std::unique_ptr<LocalWorker>> Start(LocalWorkerOptions options);
  // Stops it: SIGTERM, the time of grace, SIGKILL.
  virtual ~LocalWorker() = default;

  // OK while there is a worker or one is about to be started again, and after it was drained.
  // Unavailable: it will not be started again; says how it ended.
  virtual absl::Status status() const = 0;
  virtual pid_t pid() const = 0;  // 0: none at the moment
  virtual int starts() const = 0;
};

// To be called first thing by the child, on `worker --local`: dies with the parent, also if that is
// dead already.
void EnterLocalWorker();

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_LOCAL_WORKER_H_
