// The check on the device says what the check on the host says, element by element.
#include "measure/device_checker.h"

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "codegen/device_check.h"
#include "measure/check.h"
#include "schedule/element_type.h"
#include "tests/gpu/gpu.h"

namespace tilewright {
namespace {

absl::StatusOr<DeviceMemory> Upload(CudaContext& context, const void* data, size_t bytes) {
  absl::StatusOr<DeviceMemory> memory =
      DeviceMemory::Allocate(context, static_cast<int64_t>(bytes));
  if (!memory.ok()) return memory;
  const CudaDriver& driver = context.driver();
  absl::Status status = driver.Check(
      driver.MemcpyHtoDAsync(memory->address(), data, bytes, context.stream()), "cuMemcpyHtoD");
  if (status.ok()) status = context.Synchronize();
  if (!status.ok()) return status;
  return memory;
}

// References around everything that a rule turns on, and outputs near and far from them.
void CheckType(CudaContext& context, const DeviceDescription& device, ElementType type) {
  const ElementTypeInfo& info = Info(type);
  SCOPED_TRACE(std::string(info.name));
  const absl::StatusOr<Workload> workload =
      Workload::Make("C[i,j] = A[i,j]", {"i=40 j=25", std::string(info.name)});
  ASSERT_TRUE(workload.ok()) << workload.status();
  const absl::StatusOr<Kernel> kernel = WriteDeviceCheck(*workload, device.target);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const auto checker = DeviceChecker::Make(context, *kernel);
  ASSERT_TRUE(checker.ok()) << checker.status();

  OutputLayout layout{"C", type, {40, 25}, {32, 1}, 39 * 32 + 25};
  const absl::StatusOr<int> number = (*checker)->AddLayout(0, layout);
  ASSERT_TRUE(number.ok()) << number.status();
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  const double max = info.max_finite;
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> interesting = {0,
                                           -0.0,
                                           1,
                                           -1,
                                           0.5,
                                           1.5,
                                           2.5,
                                           max,
                                           -max,
                                           max * (1 + info.unit_roundoff),
                                           -max * (1 + info.unit_roundoff),
                                           4 * max,
                                           info.smallest_subnormal,
                                           info.smallest_subnormal / 2,
                                           infinity,
                                           -infinity,
                                           std::nan(""),
                                           127.5,
                                           -128.5,
                                           3e38};
  std::vector<double> references;
  std::vector<double> bounds;
  std::vector<double> outs;
  for (int64_t i = 0; i < layout.elements(); ++i) {
    double reference = i % 3 == 0
                           ? interesting[random() % interesting.size()]
                           : normal(random) * std::ldexp(1.0, static_cast<int>(random() % 9));
    double bound = std::fabs(normal(random)) * std::ldexp(1.0, -static_cast<int>(random() % 20));
    if (i % 4 == 0 || !std::isfinite(reference)) bound = 0;
    if (i % 7 == 0 && std::isfinite(reference)) bound *= 1 + std::fabs(reference);
    double out = reference;
    const double allowance = Allowance(type, {reference, bound});
    switch (random() % 6) {
      case 0:
        out = reference + 0.999 * allowance;
        break;
      case 1:
        out = reference - 1.5 * allowance - info.smallest_subnormal;
        break;
      case 2:
        out = interesting[random() % interesting.size()];
        break;
      case 3:
        out = reference + (info.is_float ? info.unit_roundoff * std::fabs(reference) : 1);
        break;
      default:
        break;
    }
    references.push_back(reference);
    bounds.push_back(bound);
    outs.push_back(out);
  }
  std::vector<unsigned char> buffer(static_cast<size_t>(layout.buffer_elements * info.bytes), 0x2b);
  for (int64_t i = 0; i < layout.elements(); ++i) {
    StoreElement(type, outs[i], buffer.data() + layout.Offset(i) * info.bytes);
  }
  DeviceReference reference;
  auto values = Upload(context, references.data(), references.size() * sizeof(double));
  auto errors = Upload(context, bounds.data(), bounds.size() * sizeof(double));
  const auto output = Upload(context, buffer.data(), buffer.size());
  ASSERT_TRUE(values.ok() && errors.ok() && output.ok());
  reference.values = *std::move(values);
  reference.bounds = *std::move(errors);

  int64_t wrong = 0;
  int64_t first = -1;
  double worst = 0;
  for (int64_t i = 0; i < layout.elements(); ++i) {
    const double out = LoadElement(type, buffer.data() + layout.Offset(i) * info.bytes);
    double ratio = 0;
    if (ElementPasses(type, out, {references[i], bounds[i]}, &ratio)) {
      worst = std::max(worst, ratio);
      continue;
    }
    ++wrong;
    if (first < 0) first = i;
  }
  ASSERT_TRUE((*checker)->Begin().ok());
  const absl::StatusOr<int> slot = (*checker)->Check(*number, output->address(), reference);
  ASSERT_TRUE(slot.ok()) << slot.status();
  ASSERT_TRUE((*checker)->Finish().ok());
  const DeviceCheckResult& result = (*checker)->result(*slot);
  EXPECT_EQ(static_cast<int64_t>(result.wrong), wrong);
  EXPECT_EQ(static_cast<int64_t>(result.first_wrong), first);
  EXPECT_EQ(std::bit_cast<double>(result.worst_ratio_bits), worst);
  EXPECT_EQ(result.first_unbounded, DeviceCheckResult().first_unbounded);
  EXPECT_GT(wrong, 0);
  EXPECT_NE((*checker)->Explain(*number, result, output->address(), reference).find("C["),
            std::string::npos);
}

TEST(GpuDeviceCheck, AgreesWithTheHostInEveryType) {
  TILEWRIGHT_SKIP_WITHOUT_GPU();
  const auto context = CudaContext::Open(device->uuid, "event");
  ASSERT_TRUE(context.ok()) << context.status();
  for (const ElementTypeInfo& info : AllElementTypes()) CheckType(**context, *device, info.type);
}

TEST(GpuDeviceCheck, FindsTheFirstByteThatDiffers) {
  TILEWRIGHT_SKIP_WITHOUT_GPU();
  const auto context = CudaContext::Open(device->uuid, "event");
  ASSERT_TRUE(context.ok()) << context.status();
  const absl::StatusOr<Workload> workload = Workload::Make("C[i] = A[i]", {"i=8", "f32"});
  const absl::StatusOr<Kernel> kernel = WriteDeviceCheck(*workload, device->target);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const auto checker = DeviceChecker::Make(**context, *kernel);
  ASSERT_TRUE(checker.ok()) << checker.status();
  std::vector<unsigned char> a(100001, 3);
  std::vector<unsigned char> b = a;
  b[70003] = b[99999] = b[100000] = 4;
  const auto on_device_a = Upload(**context, a.data(), a.size());
  const auto on_device_b = Upload(**context, b.data(), b.size());
  ASSERT_TRUE(on_device_a.ok() && on_device_b.ok());
  const uint64_t pa = on_device_a->address();
  const uint64_t pb = on_device_b->address();
  const CompareTask tasks[] = {{pa, pb, 100001},
                               {pa, pb, 70003},
                               {pa, pb, 70004},
                               {pa + 1, pb + 1, 100000},
                               {pa + 80000, pb + 80000, 20001},
                               {pa, pa, 100001},
                               {pa, pb, 0}};
  ASSERT_TRUE((*checker)->Begin().ok());
  const absl::StatusOr<int> first = (*checker)->Compare(tasks);
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE((*checker)->Finish().ok());
  const uint64_t expected[] = {70003, kNoDifference, 70003,        70002,
                               19999, kNoDifference, kNoDifference};
  for (int i = 0; i < 7; ++i) EXPECT_EQ((*checker)->difference(*first + i), expected[i]) << i;
}

}  // namespace
}  // namespace tilewright
