#include "measure/device_reference.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "measure/reference.h"

namespace tilewright {
namespace {

class ReferenceMaker {
 public:
  ReferenceMaker(CudaContext& context, const Workload& workload, CudaKernel& kernel,
                 DeviceChecker& checker, DeviceShape* shape)
      : context_(context),
        workload_(workload),
        kernel_(kernel),
        checker_(checker),
        shape_(*shape) {}

  absl::Status PlaceOutputs() {
    for (int o = 0; o < shape_.sets->outputs(); ++o) {
      absl::StatusOr<int> layout =
          checker_.AddLayout(o, LayoutOfOutput(workload_, o, shape_.sets->sizes()));
      if (!layout.ok()) return layout.status();
      shape_.layouts.push_back(*layout);
      absl::StatusOr<DeviceMemory> kept =
          DeviceMemory::Allocate(context_, shape_.sets->OutputBytes(o));
      if (!kept.ok()) return kept.status();
      shape_.kept.push_back(*std::move(kept));
    }
    return absl::OkStatus();
  }

  // Runs the reference kernel on a content.
  absl::Status Run(int content) {
    std::vector<DeviceReference>& references = shape_.references.emplace_back();
    std::vector<CUdeviceptr> buffers = shape_.sets->Buffers(content);
    buffers.resize(shape_.sets->inputs());
    for (int o = 0; o < shape_.sets->outputs(); ++o) {
      const int64_t bytes = checker_.layout(shape_.layouts[o]).elements() * int64_t{sizeof(double)};
      DeviceReference& reference = references.emplace_back();
      for (DeviceMemory* part : {&reference.values, &reference.bounds}) {
        absl::StatusOr<DeviceMemory> memory = AllocateNan(bytes);
        if (!memory.ok()) return memory.status();
        *part = *std::move(memory);
        buffers.push_back(part->address());
      }
    }
    absl::Status status = kernel_.Bind(shape_.sets->sizes(), [&](int) { return buffers; });
    if (status.ok()) status = kernel_.Enqueue(0, false);
    if (status.ok()) status = context_.Synchronize();
    return status;
  }

  // Refuses elements without a finite bound.
  absl::Status CheckBounds(int content) {
    absl::Status status = checker_.Begin();
    std::vector<int> slots;
    for (int o = 0; o < shape_.sets->outputs() && status.ok(); ++o) {
      const absl::StatusOr<int> slot = checker_.Check(
          shape_.layouts[o], shape_.sets->Output(content, o), shape_.references[content][o]);
      status = slot.status();
      if (slot.ok()) slots.push_back(*slot);
    }
    if (status.ok()) status = checker_.Finish();
    if (!status.ok()) return status;
    for (size_t o = 0; o < slots.size(); ++o) {
      const uint64_t number = checker_.result(slots[o]).first_unbounded;
      if (number == DeviceCheckResult().first_unbounded) continue;
      return absl::FailedPreconditionError(
          absl::StrCat(checker_.layout(shape_.layouts[o]).PointText(static_cast<int64_t>(number)),
                       " has no finite error bound: its arithmetic loses everything on normal "
                       "data, so no output "
                       "can be checked"));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Expectation> ReadElement(int content, int output, int64_t number) {
    const DeviceReference& reference = shape_.references[content][output];
    const auto offset = static_cast<CUdeviceptr>(number) * sizeof(double);
    Expectation element{};
    const CudaDriver& driver = context_.driver();
    absl::Status status =
        driver.Check(driver.MemcpyDtoHAsync(&element.reference, reference.values.address() + offset,
                                            sizeof(double), context_.stream()),
                     "cuMemcpyDtoHAsync");
    if (status.ok()) {
      status =
          driver.Check(driver.MemcpyDtoHAsync(&element.bound, reference.bounds.address() + offset,
                                              sizeof(double), context_.stream()),
                       "cuMemcpyDtoHAsync");
    }
    if (status.ok()) status = context_.Synchronize();
    if (!status.ok()) return status;
    return element;
  }

 private:
  // All ones is NaN: an element that the reference does not write cannot pass for checked.
  absl::StatusOr<DeviceMemory> AllocateNan(int64_t bytes) {
    absl::StatusOr<DeviceMemory> memory = DeviceMemory::Allocate(context_, bytes);
    if (!memory.ok()) return memory;
    const CudaDriver& driver = context_.driver();
    absl::Status status =
        driver.Check(driver.MemsetD8Async(memory->address(), 0xff, static_cast<size_t>(bytes),
                                          context_.stream()),
                     "cuMemsetD8Async");
    if (!status.ok()) return status;
    return memory;
  }

  CudaContext& context_;
  const Workload& workload_;
  CudaKernel& kernel_;
  DeviceChecker& checker_;
  DeviceShape& shape_;
};

}  // namespace

absl::Status MakeDeviceReferences(CudaContext& context, const Workload& workload,
                                  CudaKernel& reference, uint64_t seed, DeviceChecker& checker,
                                  const std::function<void(const std::string&)>& progress,
                                  DeviceShape* shape) {
  ReferenceMaker maker(context, workload, reference, checker, shape);
  if (absl::Status status = maker.PlaceOutputs(); !status.ok()) return status;
  for (int content = 0; content < shape->sets->contents(); ++content) {
    progress(absl::StrCat("reference ", content + 1, " of ", shape->sets->contents()));
    absl::Status status = maker.Run(content);
    if (status.ok()) status = maker.CheckBounds(content);
    if (!status.ok()) return status;
    if (content > 0) continue;
    progress("comparing the reference with the interpreter");
    status = CompareWithInterpreter(
        workload, shape->sets->sizes(), shape->sets->HostInputs(), seed,
        [&](int output, int64_t number) { return maker.ReadElement(0, output, number); });
    if (!status.ok()) return status;
    shape->sets->DropHostInputs();
  }
  return absl::OkStatus();
}

}  // namespace tilewright
