#include "search/coordinator_service.h"

#include <atomic>
#include <string>
#include <utility>

#include "measure/measure.grpc.pb.h"
#include "measure/protocol.h"

namespace tilewright {
namespace {

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
}

// One open call. Deletes itself when gRPC is done with it.
class Call : public grpc::ServerUnaryReactor {
 public:
  explicit Call(std::function<void()> on_cancel = nullptr) : on_cancel_(std::move(on_cancel)) {}
  void OnCancel() override {
    if (on_cancel_ != nullptr) on_cancel_();
  }
  void OnDone() override { delete this; }

 private:
  const std::function<void()> on_cancel_;
};

class Service : public v1::Coordinator::CallbackService {
 public:
  explicit Service(PostWork post) : post_(std::move(post)) {}

  grpc::ServerUnaryReactor* Enrol(grpc::CallbackServerContext*, const v1::EnrolRequest* request,
                                  v1::EnrolReply* reply) override {
    return Begin(new Call, *request, [request, reply](CoordinatorCore* core, Call* call) {
      call->Finish(ToGrpc(core->Enrol(*request, reply)));
    });
  }

  grpc::ServerUnaryReactor* Lease(grpc::CallbackServerContext*, const v1::LeaseRequest* request,
                                  v1::LeaseReply* reply) override {
    const uint64_t number = ++calls_;
    auto* call = new Call(
        [this, number] { post_([number](CoordinatorCore* core) { core->CancelLease(number); }); });
    return Begin(call, *request, [request, reply, number](CoordinatorCore* core, Call* call) {
      core->Lease(number, request, reply,
                  [call](const absl::Status& status) { call->Finish(ToGrpc(status)); });
    });
  }

  grpc::ServerUnaryReactor* Built(grpc::CallbackServerContext*, const v1::BuiltRequest* request,
                                  v1::BuiltReply* reply) override {
    return Begin(new Call, *request, [request, reply](CoordinatorCore* core, Call* call) {
      call->Finish(ToGrpc(core->Built(*request, reply)));
    });
  }

  grpc::ServerUnaryReactor* Renew(grpc::CallbackServerContext*, const v1::RenewRequest* request,
                                  v1::RenewReply* reply) override {
    return Begin(new Call, *request, [request, reply](CoordinatorCore* core, Call* call) {
      call->Finish(ToGrpc(core->Renew(*request, reply)));
    });
  }

  grpc::ServerUnaryReactor* Return(grpc::CallbackServerContext*, const v1::ReturnRequest* request,
                                   v1::ReturnReply* reply) override {
    return Begin(new Call, *request, [request, reply](CoordinatorCore* core, Call* call) {
      core->Return(request, reply,
                   [call](const absl::Status& status) { call->Finish(ToGrpc(status)); });
    });
  }

 private:
  template <typename Request, typename Work>
  grpc::ServerUnaryReactor* Begin(Call* call, const Request& request, Work work) {
    const absl::Status good = CheckRequest(request);
    if (!good.ok()) {
      call->Finish(ToGrpc(good));
    } else if (!post_([call, work](CoordinatorCore* core) { work(core, call); })) {
      call->Finish(grpc::Status(grpc::StatusCode::UNAVAILABLE,
                                "the coordinator is stopping or has too many open calls"));
    }
    return call;
  }

  const PostWork post_;
  std::atomic<uint64_t> calls_{0};
};

}  // namespace

std::unique_ptr<grpc::Service> NewCoordinatorService(PostWork post) {
  return std::make_unique<Service>(std::move(post));
}

}  // namespace tilewright
