#include "measure/coordinator_link.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <utility>

#include "absl/random/random.h"
#include "grpcpp/grpcpp.h"
#include "measure/measure.grpc.pb.h"
#include "measure/protocol.h"

namespace tilewright {
namespace {

constexpr absl::Duration kCallDeadline = absl::Seconds(10);
constexpr absl::Duration kReturnDeadline = absl::Seconds(30);

absl::Status FromGrpc(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

class CoordinatorLinkImpl : public CoordinatorLink {
 public:
  CoordinatorLinkImpl(const std::string& address, v1::EnrolRequest enrolment)
      : enrolment_(std::move(enrolment)), last_answer_(Clock::now()) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 50);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 30000);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10000);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // one connection per worker
    arguments.SetMaxReceiveMessageSize(static_cast<int>(ProtocolLimits::kResultBytes));
    stub_ = v1::Coordinator::NewStub(
        grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
  }

  absl::Status Enrol() override { return EnrolAfter(""); }

  absl::Status Lease(v1::LeaseRequest request, v1::LeaseReply* reply) override {
    const absl::Duration deadline =
        kCallDeadline + absl::Milliseconds(static_cast<int64_t>(request.wait_ms()));
    return Call(std::move(request), reply, deadline, &v1::Coordinator::Stub::Lease, true);
  }
  absl::Status Renew(v1::RenewRequest request, v1::RenewReply* reply) override {
    return Call(std::move(request), reply, kCallDeadline, &v1::Coordinator::Stub::Renew, false);
  }
  absl::Status Built(v1::BuiltRequest request, v1::BuiltReply* reply) override {
    return Call(std::move(request), reply, kCallDeadline, &v1::Coordinator::Stub::Built, false);
  }
  absl::Status Return(v1::ReturnRequest request, v1::ReturnReply* reply) override {
    return Call(std::move(request), reply, kReturnDeadline, &v1::Coordinator::Stub::Return, false);
  }

  void CancelLease() override {
    std::scoped_lock lock(mutex_);
    cancelled_ = true;
    if (waiting_ != nullptr) waiting_->TryCancel();
  }

  absl::Duration heartbeat() const override {
    std::scoped_lock lock(mutex_);
    return heartbeat_;
  }

  absl::Duration silence() const override {
    std::scoped_lock lock(mutex_);
    return absl::FromChrono(Clock::now() - last_answer_);
  }

 private:
  using Clock = std::chrono::steady_clock;
  template <typename Request, typename Reply>
  using Method = grpc::Status (v1::Coordinator::Stub::*)(grpc::ClientContext*, const Request&,
                                                         Reply*);

  static void SetDeadline(grpc::ClientContext* context, absl::Duration deadline) {
    context->set_deadline(std::chrono::system_clock::now() + absl::ToChronoMicroseconds(deadline));
  }

  // An answer of the coordinator itself, good or bad, shows that it is there.
  void Note(const absl::Status& status) {
    const bool answered = !absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status) &&
                          !absl::IsCancelled(status) && status.code() != absl::StatusCode::kUnknown;
    std::scoped_lock lock(mutex_);
    if (answered) last_answer_ = Clock::now();
  }

  // Enrols unless that was done since `known` was the enrolment.
  absl::Status EnrolAfter(const std::string& known) {
    std::scoped_lock enrolling(enrol_mutex_);
    if (const std::string current = enrolment_id(); !current.empty() && current != known) {
      return absl::OkStatus();
    }
    grpc::ClientContext context;
    SetDeadline(&context, kCallDeadline);
    v1::EnrolReply reply;
    const absl::Status status = FromGrpc(stub_->Enrol(&context, enrolment_, &reply));
    Note(status);
    if (!status.ok()) return status;
    std::scoped_lock lock(mutex_);
    enrolment_id_ = reply.enrolment_id();
    heartbeat_ = std::max(absl::Milliseconds(10),
                          absl::Milliseconds(static_cast<int64_t>(reply.heartbeat_ms())));
    return absl::OkStatus();
  }

  std::string enrolment_id() const {
    std::scoped_lock lock(mutex_);
    return enrolment_id_;
  }

  template <typename Request, typename Reply>
  absl::Status Call(Request request, Reply* reply, absl::Duration deadline,
                    Method<Request, Reply> method, bool cancellable) {
    for (int attempt = 0;; ++attempt) {
      const std::string id = enrolment_id();
      request.set_enrolment_id(id);
      grpc::ClientContext context;
      SetDeadline(&context, deadline);
      if (cancellable) {
        std::scoped_lock lock(mutex_);
        if (cancelled_) return absl::CancelledError("the worker is ending");
        waiting_ = &context;
      }
      reply->Clear();
      const absl::Status status = FromGrpc((stub_.get()->*method)(&context, request, reply));
      if (cancellable) {
        std::scoped_lock lock(mutex_);
        waiting_ = nullptr;
      }
      Note(status);
      if (!absl::IsNotFound(status) || attempt > 0) return status;
      const absl::Status enrolled = EnrolAfter(id);
      if (!enrolled.ok()) return enrolled;
    }
  }

  const v1::EnrolRequest enrolment_;
  std::unique_ptr<v1::Coordinator::Stub> stub_;
  std::mutex enrol_mutex_;    // held while enrolling; taken before mutex_
  mutable std::mutex mutex_;  // guards all that follows
  std::string enrolment_id_;
  absl::Duration heartbeat_ = absl::Seconds(1);
  Clock::time_point last_answer_;
  grpc::ClientContext* waiting_ = nullptr;
  bool cancelled_ = false;
};

}  // namespace

std::unique_ptr<CoordinatorLink> CoordinatorLink::Make(const std::string& address,
                                                       const v1::EnrolRequest& enrolment) {
  return std::make_unique<CoordinatorLinkImpl>(address, enrolment);
}

absl::Duration Backoff::Next() {
  const absl::Duration most =
      std::min(longest_, first_ * static_cast<double>(1u << std::min(attempts_, 20)));
  ++attempts_;
  thread_local absl::BitGen random;
  return most * absl::Uniform(random, 0.0, 1.0);
}

}  // namespace tilewright
