// The builder: a child that turns candidates into kernels. Compilers may hang, crash or eat memory;
// here that costs a candidate, not a worker.
#include <string>

#include "absl/strings/str_cat.h"
#include "codegen/device_check.h"
#include "codegen/library_kernel.h"
#include "measure/child_process.h"
#include "measure/children.h"
#include "measure/failure.h"
#include "measure/frames.h"
#include "measure/measure.pb.h"

namespace tilewright {
namespace {

absl::StatusOr<Kernel> Build(const v1::BuildTask& task, const Catalogue& catalogue) {
  absl::StatusOr<Workload> workload = Workload::FromCanonicalText(task.workload_text());
  if (!workload.ok()) return workload.status();
  absl::StatusOr<Target> target = ParseTarget(task.target_text());
  if (!target.ok()) return target.status();
  if (task.device_check()) return WriteDeviceCheck(*workload, *target);
  if (task.schedule().empty()) {
    return WriteReferenceKernel(*workload, *target, task.reference_u_acc(), target->cores);
  }
  absl::StatusOr<Schedule> schedule = ParseSchedule(task.schedule());
  if (!schedule.ok()) return schedule.status();
  if (IsLibrary(*schedule)) return WriteLibraryKernel(*workload, *schedule);
  WriteOptions options;
  options.dump_directory = task.dump_directory();
  return WriteKernel({*std::move(workload), *std::move(target), *std::move(schedule)}, catalogue,
                     options);
}

v1::BuiltKernel Answer(const v1::BuildTask& task, const Catalogue& catalogue) {
  v1::BuiltKernel built;
  const double start = MonotonicSeconds();
  const absl::StatusOr<Kernel> kernel = Build(task, catalogue);
  built.mutable_facts()->set_build_ns(static_cast<uint64_t>((MonotonicSeconds() - start) * 1e9));
  if (!kernel.ok()) {
    const FailureKind kind =
        absl::IsResourceExhausted(kernel.status())  ? FailureKind::kResourceLimit
        : absl::IsDeadlineExceeded(kernel.status()) ? FailureKind::kBuildTimeout
                                                    : FailureKind::kBuildFailed;
    built.mutable_failure()->set_kind(std::string(Info(kind).name));
    built.mutable_failure()->set_text(std::string(kernel.status().message()));
    return built;
  }
  built.set_recipe_json(kernel->RecipeJson());
  for (const CodeObject& object : kernel->objects) built.add_objects(object.bytes);
  return built;
}

}  // namespace

int BuilderMain(const Catalogue& catalogue) {
  EnterChild();
  for (;;) {
    v1::BuildTask task;
    const absl::Status received = ReceiveMessage(kChildDescriptor, &task, absl::InfiniteDuration());
    if (absl::IsUnavailable(received)) return kChildExitFine;
    if (!received.ok()) return kChildExitBadParent;
    if (!SendMessage(kChildDescriptor, Answer(task, catalogue), kFrameSendTimeout).ok()) {
      return kChildExitBadParent;
    }
  }
}

}  // namespace tilewright
