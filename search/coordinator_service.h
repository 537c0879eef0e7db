// The coordinator's gRPC service: turns calls into posted work. Hidden behind search/coordinator.h.
#ifndef TILEWRIGHT_SEARCH_COORDINATOR_SERVICE_H_
#define TILEWRIGHT_SEARCH_COORDINATOR_SERVICE_H_

#include <functional>
#include <memory>

#include "grpcpp/grpcpp.h"
#include "grpcpp/impl/service_type.h"
#include "search/coordinator_core.h"

namespace tilewright {

// Runs work on the coordinator's thread. False: it takes no more (it is stopping, or too much waits
// already).
using PostWork = std::function<bool(std::function<void(CoordinatorCore*)>)>;

// Every call is finished exactly once by the posted work: grpc::Server::Shutdown does not return
// while one is open (github.com/grpc/grpc, issue 39114), so `post` must run what it accepted.
std::unique_ptr<grpc::Service> NewCoordinatorService(PostWork post);

}  // namespace tilewright

#endif  // TILEWRIGHT_SEARCH_COORDINATOR_SERVICE_H_
