// The Coordinator owns the log, the queue and the leases, and serves workers over gRPC
// (docs/formats/protocol.md).
//
//   workers ─ gRPC callbacks ─┐                      ┌─ lease book (measure/lease_book.h)
//                             ├─► one thread, in turn ┤
//   tuner ─ TuningClient ─────┘                      └─ CommitSink: group commit, then acknowledge
//
// Calls are posted to one thread that owns book and sink. Results that arrive while a commit is
// under way make the next one; a result is acknowledged only after the commit that has it returned,
// so kill -9 at any point loses nothing acknowledged. As `serve` it loads no model. Thread-safe.
#ifndef TILEWRIGHT_SEARCH_COORDINATOR_H_
#define TILEWRIGHT_SEARCH_COORDINATOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "search/commit_sink.h"
#include "search/tuning_client.h"

namespace tilewright {

struct CoordinatorOptions {
  // Addresses to serve: "unix:/run/x.sock", "127.0.0.1:0". Plaintext, so only Unix sockets and
  // loopback are accepted.
  std::vector<std::string> listen = {};
  // A lease that is not renewed for this long goes back to the queue. Workers renew three times as
  // often.
  absl::Duration lease_time = absl::Seconds(30);
  int infrastructure_retries = 2;
  // How long the log may refuse results before the tuner is told.
  absl::Duration sink_patience = absl::Seconds(10);
  // Bounds of what a coordinator holds for its peers; more is ResourceExhausted.
  int max_pending_calls = 20000;
  // Now, never backwards; empty: the wall clock at the start plus a steady clock. For tests.
  std::function<absl::Time()> clock = nullptr;
};

class Coordinator {
 public:
  // Commits a generation and starts to serve. InvalidArgument: an address that is not local, or
  // that can't be listened on.
  static absl::StatusOr<std::unique_ptr<Coordinator>> Start(CoordinatorOptions options,
                                                            std::unique_ptr<CommitSink> sink);
  // Stops: open calls end with Unavailable (workers keep their results and dial again), the last
  // commit is waited for.
  virtual ~Coordinator() = default;

  // What workers dial, one per address of the options ("127.0.0.1:41231").
  virtual const std::vector<std::string>& addresses() const = 0;
  virtual uint64_t generation() const = 0;
  // From now on leases say that no more work will come: workers finish, return and leave.
  virtual void Drain() = 0;
  virtual int live_enrolments() const = 0;

 private:
  friend std::unique_ptr<TuningClient> NewLocalTuningClient(Coordinator* coordinator);
  virtual std::unique_ptr<TuningClient> NewClient() = 0;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_SEARCH_COORDINATOR_H_
