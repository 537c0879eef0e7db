// A CoordinatorLink is a worker's connection: calls with deadlines, enrolment, and the way back
// after a lost connection.
//
// Each call is tried once under the current enrolment. If the coordinator does not know the
// enrolment (it was restarted), the device is enrolled again and the call repeated. Connection
// faults are the caller's to repeat, after Backoff. Thread-safe.
#ifndef TILEWRIGHT_MEASURE_COORDINATOR_LINK_H_
#define TILEWRIGHT_MEASURE_COORDINATOR_LINK_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "measure/measure.pb.h"

namespace tilewright {

class CoordinatorLink {
 public:
  // `enrolment` is what the device enrols with; `address` has passed CheckPlaintextAddress.
  static std::unique_ptr<CoordinatorLink> Make(const std::string& address,
                                               const v1::EnrolRequest& enrolment);
  virtual ~CoordinatorLink() = default;

  // All fill in the request's enrolment id. FailedPrecondition: this worker's version is not spoken
  // there, or another worker has the device now; InvalidArgument: the request is refused and will
  // be again; other codes: try again later.
  virtual absl::Status Enrol() = 0;
  virtual absl::Status Lease(v1::LeaseRequest request, v1::LeaseReply* reply) = 0;
  virtual absl::Status Renew(v1::RenewRequest request, v1::RenewReply* reply) = 0;
  virtual absl::Status Built(v1::BuiltRequest request, v1::BuiltReply* reply) = 0;
  virtual absl::Status Return(v1::ReturnRequest request, v1::ReturnReply* reply) = 0;

  // Ends a Lease that waits, and every later one at once, with Cancelled.
  virtual void CancelLease() = 0;
  virtual absl::Duration heartbeat() const = 0;
  // Since the coordinator last answered anything, or since Make.
  virtual absl::Duration silence() const = 0;
};

// Full-jitter exponential backoff (Brooker, "Exponential Backoff And Jitter", AWS Architecture
// Blog, 2015): uniform in [0, min(longest, first * 2^n)].
class Backoff {
 public:
  Backoff(absl::Duration first, absl::Duration longest) : first_(first), longest_(longest) {}
  absl::Duration Next();
  void Reset() { attempts_ = 0; }

 private:
  const absl::Duration first_;
  const absl::Duration longest_;
  int attempts_ = 0;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_COORDINATOR_LINK_H_
