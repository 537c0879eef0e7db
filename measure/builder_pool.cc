#include "measure/builder_pool.h"

#include <poll.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "measure/child_process.h"
#include "measure/failure.h"
#include "measure/frames.h"

namespace tilewright {
namespace {

v1::BuiltKernel Failed(FailureKind kind, std::string text) {
  v1::BuiltKernel built;
  built.mutable_failure()->set_kind(std::string(Info(kind).name));
  built.mutable_failure()->set_text(std::move(text));
  return built;
}

class ChildBuilders : public BuilderPool {
 public:
  ChildBuilders(std::string executable, int builders)
      : executable_(std::move(executable)), builders_(builders) {}

  std::vector<v1::BuiltKernel> Build(absl::Span<const v1::BuildTask> tasks,
                                     absl::Duration timeout) override {
    std::vector<v1::BuiltKernel> results(tasks.size());
    size_t next = 0;
    for (;;) {
      for (Builder& builder : builders_) {
        while (builder.task < 0 && next < tasks.size()) {
          Start(builder, static_cast<int>(next), tasks[next], timeout, &results);
          ++next;
        }
      }
      std::vector<pollfd> waiting;
      double first_deadline = 0;
      for (const Builder& builder : builders_) {
        if (builder.task < 0) continue;
        first_deadline =
            waiting.empty() ? builder.deadline : std::min(first_deadline, builder.deadline);
        waiting.push_back({builder.child->fd(), POLLIN, 0});
      }
      if (waiting.empty()) return results;
      const double left = std::max(0.0, first_deadline - MonotonicSeconds());
      poll(waiting.data(), waiting.size(), static_cast<int>(std::ceil(left * 1e3)));
      size_t number = 0;
      for (Builder& builder : builders_) {
        if (builder.task < 0 || number >= waiting.size()) continue;
        if (builder.child->fd() != waiting[number].fd) continue;
        Finish(builder, waiting[number++].revents != 0, timeout, &results);
      }
    }
  }

 private:
  struct Builder {
    std::unique_ptr<ChildProcess> child;
    int task = -1;
    double deadline = 0;
  };

  // On failure the task has its result and the builder is free.
  void Start(Builder& builder, int number, const v1::BuildTask& task, absl::Duration timeout,
             std::vector<v1::BuiltKernel>* results) {
    // A builder may have died while idle (the system was short of memory): one more is tried.
    for (int attempt = 0; attempt < 2; ++attempt) {
      if (!builder.child) {
        absl::StatusOr<std::unique_ptr<ChildProcess>> child =
            ChildProcess::Spawn(executable_, {"builder"});
        if (!child.ok()) {
          (*results)[number] =
              Failed(FailureKind::kWorkerLost, std::string(child.status().message()));
          return;
        }
        builder.child = *std::move(child);
      }
      if (builder.child->Send(task, kFrameSendTimeout).ok()) {
        builder.task = number;
        builder.deadline = MonotonicSeconds() + absl::ToDoubleSeconds(timeout);
        return;
      }
      builder.child.reset();
    }
    (*results)[number] = Failed(FailureKind::kWorkerLost, "builders die before they take a task");
  }

  void Finish(Builder& builder, bool readable, absl::Duration timeout,
              std::vector<v1::BuiltKernel>* results) {
    v1::BuiltKernel& result = (*results)[builder.task];
    if (!readable) {
      if (MonotonicSeconds() < builder.deadline) return;
      result = Failed(FailureKind::kBuildTimeout,
                      absl::StrCat("no kernel after ", absl::FormatDuration(timeout)));
      builder.child.reset();
    } else {
      const absl::Duration left =
          absl::Seconds(std::max(0.1, builder.deadline - MonotonicSeconds()));
      absl::StatusOr<Frame> frame = builder.child->Receive(left);
      if (!frame.ok() || frame->kind != FrameKind::kMessage ||
          !result.ParseFromString(frame->payload)) {
        const ChildProcess::Exit exit = builder.child->Stop(kChildEndPatience);
        result =
            Failed(FailureKind::kBuildFailed, absl::StrCat("the builder ended: ", exit.ToString()));
        builder.child.reset();
      }
    }
    builder.task = -1;
  }

  const std::string executable_;
  std::vector<Builder> builders_;
};

}  // namespace

std::unique_ptr<BuilderPool> BuilderPool::Make(std::string executable, int builders) {
  return std::make_unique<ChildBuilders>(std::move(executable), builders);
}

}  // namespace tilewright
