#include "measure/worker.h"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "measure/coordinator_link.h"
#include "measure/protocol.h"
#include "measure/worker_batch.h"
#include "measure/worker_queue.h"

namespace tilewright {
namespace {

// How soon the measuring thread sees that it is told to stop.
constexpr absl::Duration kStopPoll = absl::Milliseconds(50);
constexpr absl::Duration kGoodBye = absl::Seconds(1);
constexpr uint32_t kLeaseWaitMs = 5000;
// Built leases that wait for the device; one more is being built.
constexpr size_t kLeasesAhead = 1;
constexpr absl::Duration kFirstBackoff = absl::Milliseconds(50);
constexpr absl::Duration kLongestBackoff = absl::Seconds(5);

std::string HostName() {
  char name[256] = "";
  return gethostname(name, sizeof(name) - 1) == 0 && name[0] != '\0' ? name
                                                                     : "a host without a name";
}

class Worker {
 public:
  Worker(const WorkerOptions& options, const WorkerParts& parts, const std::atomic<bool>& stop)
      : options_(options), parts_(parts), stop_(stop) {}

  WorkerExit Run(std::string* error) {
    absl::Status address = CheckPlaintextAddress(options_.address);
    if (!address.ok()) return Fail(WorkerExit::kBadInput, address, error);
    absl::StatusOr<std::unique_ptr<Workbench>> bench = parts_.make_workbench();
    if (!bench.ok()) {
      return Fail(
          absl::IsUnavailable(bench.status()) ? WorkerExit::kDeviceLost : WorkerExit::kFailed,
          bench.status(), error);
    }
    link_ = CoordinatorLink::Make(options_.address, EnrolmentRequest());
    if (Enrol()) {
      batch_ = std::make_unique<WorkerBatch>(bench->get(), &queue_, link_.get(),
                                             parts_.device.target.ToString(),
                                             [this] { return stop_ || queue_.ending(); });
      const bool ahead = (*bench)->builds_ahead();
      std::thread building;
      if (ahead) building = std::thread([this] { BuildLoop(); });
      std::thread leasing([this] { LeaseLoop(); });
      std::thread returning([this] { ReturnLoop(); });
      std::thread heartbeat([this] { HeartbeatLoop(); });
      if (ahead) {
        MeasureBuiltLoop();
        building.join();
      } else {
        MeasureLoop();
      }
      link_->CancelLease();
      leasing.join();
      Leave();
      queue_.Close();
      returning.join();
      heartbeat.join();
    }
    auto [exit, why] = queue_.reason();
    *error = std::move(why);
    return exit;
  }

 private:
  static WorkerExit Fail(WorkerExit exit, const absl::Status& status, std::string* error) {
    *error = std::string(status.message());
    return exit;
  }

  v1::EnrolRequest EnrolmentRequest() const {
    v1::EnrolRequest request;
    request.set_protocol_version(kProtocolVersion);
    request.set_toolchain_id(parts_.toolchain_id);
    request.set_device_uuid(parts_.device.uuid);
    request.set_target_text(parts_.device.target.ToString());
    request.set_timer(parts_.device.timer);
    request.set_driver(parts_.device.driver);
    request.set_worker_name(options_.name.empty() ? HostName() : options_.name);
    request.set_worker_nonce(NewRandomId());
    return request;
  }

  // What a call's failure means for the worker as a whole. False: try it again later.
  bool EndIfFatal(const absl::Status& status) {
    if (absl::IsFailedPrecondition(status)) {
      queue_.End(WorkerExit::kRetry, std::string(status.message()));
    } else if (link_->silence() > options_.give_up_after) {
      queue_.End(
          WorkerExit::kCoordinatorGone,
          absl::StrCat(options_.address, ": no coordinator for ",
                       absl::FormatDuration(options_.give_up_after), ": ", status.message()));
    }
    return queue_.ending();
  }

  // False: the worker ends before it began.
  bool Enrol() {
    Backoff backoff(kFirstBackoff, kLongestBackoff);
    bool said = false;
    while (!stop_) {
      const absl::Status enrolled = link_->Enrol();
      if (enrolled.ok()) return true;
      if (absl::IsInvalidArgument(enrolled) || absl::IsFailedPrecondition(enrolled)) {
        queue_.End(WorkerExit::kBadInput, std::string(enrolled.message()));
      }
      if (EndIfFatal(enrolled)) return false;
      if (!said) {
        std::fprintf(stderr, "tilewright worker: %s: %s; trying again for %s\n",
                     options_.address.c_str(), std::string(enrolled.message()).c_str(),
                     absl::FormatDuration(options_.give_up_after).c_str());
        said = true;
      }
      queue_.Sleep(backoff.Next(), false);
    }
    return false;
  }

  void MeasureLoop() {
    while (!queue_.ending()) {
      if (stop_) {
        queue_.End(WorkerExit::kDrained, "");
        break;
      }
      queue_.WantLease();
      const std::optional<v1::LeaseReply> lease = queue_.TakeLease(kStopPoll);
      if (!lease.has_value()) continue;
      if (queue_.IsLost(lease->epoch())) {
        queue_.Drop(lease->epoch(), lease->items_size());
        continue;
      }
      const absl::Status worked = batch_->Run(*lease);
      if (!worked.ok()) queue_.End(WorkerExit::kDeviceLost, std::string(worked.message()));
    }
  }

  // Where the workbench builds ahead: leases are built by one thread while another measures those
  // that it built before.
  void BuildLoop() {
    while (!queue_.ending() && !stop_) {
      queue_.WantLease();
      std::optional<v1::LeaseReply> lease = queue_.TakeLease(kStopPoll);
      if (!lease.has_value()) continue;
      if (queue_.IsLost(lease->epoch())) {
        queue_.Drop(lease->epoch(), lease->items_size());
        continue;
      }
      WorkerBatch::BuiltLease built = batch_->Build(*std::move(lease));
      std::unique_lock<std::mutex> lock(built_mutex_);
      built_.push_back(std::move(built));
      built_changed_.notify_all();
      while (!queue_.ending() && !stop_ && built_.size() >= kLeasesAhead) {
        built_changed_.wait_for(lock, absl::ToChronoMilliseconds(kStopPoll));
      }
    }
  }

  void MeasureBuiltLoop() {
    while (!queue_.ending()) {
      if (stop_) {
        queue_.End(WorkerExit::kDrained, "");
        break;
      }
      std::optional<WorkerBatch::BuiltLease> built = TakeBuilt(kStopPoll);
      if (!built.has_value()) continue;
      if (queue_.IsLost(built->lease.epoch())) {
        queue_.Drop(built->lease.epoch(), built->lease.items_size());
        continue;
      }
      const absl::Status worked = batch_->Measure(*built);
      if (!worked.ok()) queue_.End(WorkerExit::kDeviceLost, std::string(worked.message()));
    }
  }

  std::optional<WorkerBatch::BuiltLease> TakeBuilt(absl::Duration timeout) {
    std::unique_lock<std::mutex> lock(built_mutex_);
    if (!built_changed_.wait_for(lock, absl::ToChronoMilliseconds(timeout),
                                 [this] { return !built_.empty(); })) {
      return std::nullopt;
    }
    WorkerBatch::BuiltLease built = std::move(built_.front());
    built_.pop_front();
    built_changed_.notify_all();
    return built;
  }

  // Gives back what was leased and not begun, and waits for the acknowledgement of everything.
  void Leave() {
    while (std::optional<WorkerBatch::BuiltLease> built = TakeBuilt(absl::ZeroDuration())) {
      batch_->Release(built->lease, 0);
    }
    while (std::optional<v1::LeaseReply> lease = queue_.TakeLease(absl::ZeroDuration())) {
      batch_->Release(*lease, 0);
    }
    if (queue_.reason().first == WorkerExit::kCoordinatorGone) return;
    // To say good-bye alone is not worth the whole time of grace: without it the enrolment ends a
    // little later.
    const bool owes = !queue_.AwaitEmpty(absl::ZeroDuration());
    v1::ReturnRequest leaving;
    leaving.set_leaving(true);
    queue_.Post(std::move(leaving));
    queue_.AwaitEmpty(owes ? options_.grace : std::min(options_.grace, kGoodBye));
  }

  void LeaseLoop() {
    Backoff backoff(kFirstBackoff, kLongestBackoff);
    while (queue_.AwaitWant()) {
      v1::LeaseRequest request;
      request.set_max_items(static_cast<uint32_t>(options_.batch));
      request.set_wait_ms(kLeaseWaitMs);
      for (const v1::Epoch& epoch : queue_.Held()) *request.add_held() = epoch;
      v1::LeaseReply reply;
      const absl::Status status = link_->Lease(std::move(request), &reply);
      if (status.ok()) {
        backoff.Reset();
        if (reply.has_run()) {
          queue_.AddLease(std::move(reply));
        } else if (reply.drain()) {
          queue_.End(WorkerExit::kDrained, "");
        }
        continue;
      }
      if (EndIfFatal(status)) return;
      queue_.Sleep(backoff.Next(), false);
    }
  }

  void ReturnLoop() {
    Backoff backoff(kFirstBackoff, kLongestBackoff);
    std::optional<absl::Time> unknown_since;
    v1::ReturnRequest request;
    while (queue_.AwaitOutgoing(&request)) {
      request.set_busy_ns(absl::ToInt64Nanoseconds(batch_->busy()));
      v1::ReturnReply reply;
      const absl::Status status = link_->Return(request, &reply);
      if (!absl::IsAborted(status)) unknown_since.reset();
      if (status.ok()) {
        backoff.Reset();
        queue_.Acknowledge();
        continue;
      }
      // A run that the coordinator does not know may be resumed there soon; but not for ever.
      if (absl::IsAborted(status) && !unknown_since.has_value()) unknown_since = absl::Now();
      const bool given_up =
          absl::IsAborted(status) && absl::Now() - *unknown_since > options_.give_up_after;
      if (absl::IsInvalidArgument(status) || given_up) {
        std::fprintf(stderr, "worker: results dropped, the coordinator refused them: %s\n",
                     std::string(status.message()).c_str());
        queue_.Acknowledge();
        continue;
      }
      EndIfFatal(status);
      queue_.Sleep(backoff.Next(), true);
    }
  }

  void HeartbeatLoop() {
    while (!queue_.Sleep(link_->heartbeat(), true)) {
      v1::RenewRequest request;
      for (const v1::Epoch& epoch : queue_.Held()) *request.add_epochs() = epoch;
      v1::RenewReply reply;
      const absl::Status status = link_->Renew(std::move(request), &reply);
      if (!status.ok()) {
        EndIfFatal(status);
        continue;
      }
      for (const v1::Epoch& epoch : reply.lost()) queue_.MarkLost(epoch);
    }
  }

  const WorkerOptions& options_;
  const WorkerParts& parts_;
  const std::atomic<bool>& stop_;
  WorkerQueue queue_;
  std::unique_ptr<CoordinatorLink> link_;
  std::unique_ptr<WorkerBatch> batch_;
  std::mutex built_mutex_;  // guards built_
  std::condition_variable built_changed_;
  std::deque<WorkerBatch::BuiltLease> built_;  // waiting for the device
};

}  // namespace

WorkerExit RunWorker(const WorkerOptions& options, const WorkerParts& parts,
                     const std::atomic<bool>& stop, std::string* error) {
  return Worker(options, parts, stop).Run(error);
}

}  // namespace tilewright
