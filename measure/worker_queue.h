// What a worker's threads hand each other: leases that wait for the device, results that wait for
// the coordinator's acknowledgement, and how it all ends. Hidden behind measure/worker.h.
// Thread-safe.
//
//   leasing thread ─ AddLease ─► measuring thread ─ Post ─► returning thread ─► Acknowledge
//                                heartbeat thread: Held() ─► renewed, MarkLost
#ifndef TILEWRIGHT_MEASURE_WORKER_QUEUE_H_
#define TILEWRIGHT_MEASURE_WORKER_QUEUE_H_

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "measure/measure.pb.h"
#include "measure/worker.h"

namespace tilewright {

class WorkerQueue {
 public:
  // One thing to return: a request with a single result, a refusal or released items.
  using Outgoing = v1::ReturnRequest;

  // ---- Leases
  // Asks the leasing thread for one more lease, unless one is ready.
  void WantLease();
  // Waits until a lease is wanted. False: the worker is ending.
  bool AwaitWant();
  void AddLease(v1::LeaseReply lease);
  // Takes a ready lease, waiting up to `timeout`.
  std::optional<v1::LeaseReply> TakeLease(absl::Duration timeout);
  // Epochs with items that are not measured, or not acknowledged.
  std::vector<v1::Epoch> Held() const;
  void MarkLost(const v1::Epoch& epoch);
  bool IsLost(const v1::Epoch& epoch) const;
  // `items` of a lost lease will not be returned.
  void Drop(const v1::Epoch& epoch, int items);

  // ---- Results
  void Post(Outgoing outgoing);
  // Waits for something to return; merges what belongs together (same run, lease and session).
  // False: the worker is ending and nothing is left, or the time of grace is over. The same is
  // given again until it is acknowledged.
  bool AwaitOutgoing(v1::ReturnRequest* request);
  // The request that AwaitOutgoing gave is done with.
  void Acknowledge();
  bool AwaitEmpty(absl::Duration timeout);

  // ---- The end
  // No lease is taken any more. The first reason given stays.
  void End(WorkerExit exit, std::string why);
  bool ending() const;
  std::pair<WorkerExit, std::string> reason() const;
  // Nothing is returned any more either.
  void Close();
  // Sleeps; true if the worker is ending (`closing`: only if it is closed).
  bool Sleep(absl::Duration duration, bool until_closed);

 private:
  using EpochKey = std::pair<uint64_t, uint64_t>;
  static EpochKey Key(const v1::Epoch& epoch) { return {epoch.generation(), epoch.counter()}; }
  // The caller holds mutex_.
  void Settle(const v1::Epoch& epoch, int items);

  mutable std::mutex mutex_;         // guards all that follows
  std::condition_variable changed_;  // told of every change that a wait looks at
  bool wanted_ = false;
  std::deque<v1::LeaseReply> ready_;
  std::map<EpochKey, int> open_items_;
  std::set<EpochKey> lost_;
  std::deque<Outgoing> outgoing_;
  int given_ = 0;  // how many of outgoing_ the last AwaitOutgoing merged
  std::optional<std::pair<WorkerExit, std::string>> end_;
  bool closed_ = false;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_WORKER_QUEUE_H_
