#include "measure/device_checker.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "measure/statistics.h"

namespace tilewright {
namespace {

// All tasks and results of a batch; a rotation of 1024 sets of four buffers takes 180 KB.
constexpr int64_t kBatchBytes = int64_t{16} << 20;
constexpr int64_t kBatchAlignment = 64;
// Bytes that a block of the compare kernel takes before more blocks help.
constexpr uint64_t kBytesPerBlock = 64 << 10;
constexpr int kBlocksPerMultiprocessor = 8;
constexpr unsigned kMostRows = 65535;  // gridDim.y
// SMs are numbered below this, with room for chips that number some they do not use.
constexpr int kMostMultiprocessors = 512;

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceChecker>> DeviceChecker::Make(CudaContext& context,
                                                                   const Kernel& check) {
  auto checker = std::unique_ptr<DeviceChecker>(new DeviceChecker(context));
  absl::StatusOr<std::unique_ptr<CudaKernel>> kernel = CudaKernel::Load(context, check, false);
  if (!kernel.ok()) return kernel.status();
  checker->kernel_ = *std::move(kernel);
  absl::StatusOr<DeviceMemory> device = DeviceMemory::Allocate(context, kBatchBytes);
  if (!device.ok()) return device.status();
  checker->device_ = *std::move(device);
  absl::StatusOr<PinnedMemory> host = PinnedMemory::Allocate(context, kBatchBytes);
  if (!host.ok()) return host.status();
  checker->host_ = *std::move(host);
  return checker;
}

absl::StatusOr<int> DeviceChecker::AddLayout(int output, const OutputLayout& layout) {
  std::vector<int64_t> dimensions = layout.shape;
  dimensions.insert(dimensions.end(), layout.strides.begin(), layout.strides.end());
  dimensions.push_back(0);  // a scalar has no dimensions, but the kernel's parameter is an address
  const size_t bytes = dimensions.size() * sizeof(int64_t);
  absl::StatusOr<DeviceMemory> memory =
      DeviceMemory::Allocate(context_, static_cast<int64_t>(bytes));
  if (!memory.ok()) return memory.status();
  const CudaDriver& driver = context_.driver();
  absl::Status status = driver.Check(
      driver.MemcpyHtoDAsync(memory->address(), dimensions.data(), bytes, context_.stream()),
      "cuMemcpyHtoDAsync");
  if (status.ok()) status = context_.Synchronize();
  if (!status.ok()) return status;
  layouts_.push_back({output, layout, *std::move(memory)});
  return static_cast<int>(layouts_.size()) - 1;
}

absl::Status DeviceChecker::Begin() {
  used_ = 0;
  check_offsets_.clear();
  compare_offsets_.clear();
  clock_offsets_.clear();
  return absl::OkStatus();
}

absl::StatusOr<int64_t> DeviceChecker::Reserve(int64_t bytes) {
  const int64_t offset = used_;
  const int64_t end = offset + (bytes + kBatchAlignment - 1) / kBatchAlignment * kBatchAlignment;
  if (end > kBatchBytes) {
    return absl::InternalError(absl::StrCat("a batch of checks of more than ", kBatchBytes, " B"));
  }
  used_ = end;
  return offset;
}

absl::Status DeviceChecker::Launch(int launch, unsigned blocks, unsigned rows,
                                   const std::vector<uint64_t>& parameters) {
  std::vector<uint64_t> values = parameters;
  std::vector<void*> pointers;
  for (uint64_t& value : values) pointers.push_back(&value);
  CUlaunchConfig config = {};
  config.gridDimX = blocks;
  config.gridDimY = rows;
  config.gridDimZ = 1;
  config.blockDimX = kCheckThreads;
  config.blockDimY = config.blockDimZ = 1;
  config.hStream = context_.stream();
  const CudaDriver& driver = context_.driver();
  return driver.Check(
      driver.LaunchKernelEx(&config, kernel_->function(launch), pointers.data(), nullptr),
      "cuLaunchKernelEx");
}

absl::StatusOr<int> DeviceChecker::Check(int layout, CUdeviceptr output,
                                         const DeviceReference& reference) {
  const PlacedLayout& placed = layouts_[layout];
  const absl::StatusOr<int64_t> offset = Reserve(sizeof(DeviceCheckResult));
  if (!offset.ok()) return offset.status();
  new (host_.data() + *offset) DeviceCheckResult;
  const CudaDriver& driver = context_.driver();
  const CUdeviceptr result = device_.address() + static_cast<CUdeviceptr>(*offset);
  absl::Status status =
      driver.Check(driver.MemcpyHtoDAsync(result, host_.data() + *offset, sizeof(DeviceCheckResult),
                                          context_.stream()),
                   "cuMemcpyHtoDAsync");
  if (!status.ok()) return status;
  const int64_t elements = placed.layout.elements();
  const int64_t most = int64_t{kBlocksPerMultiprocessor} * context_.multiprocessors();
  const int64_t blocks =
      std::clamp<int64_t>((elements + kCheckThreads - 1) / kCheckThreads, 1, most);
  status = Launch(kFirstCheckLaunch + placed.output, static_cast<unsigned>(blocks), 1,
                  {output, reference.values.address(), reference.bounds.address(),
                   placed.dimensions.address(), static_cast<uint64_t>(elements), result});
  if (!status.ok()) return status;
  check_offsets_.push_back(*offset);
  return static_cast<int>(check_offsets_.size()) - 1;
}

absl::StatusOr<int> DeviceChecker::Compare(absl::Span<const CompareTask> tasks) {
  const int first = static_cast<int>(compare_offsets_.size());
  const CudaDriver& driver = context_.driver();
  for (size_t begin = 0; begin < tasks.size(); begin += kMostRows) {
    const absl::Span<const CompareTask> part = tasks.subspan(begin, kMostRows);
    const int64_t task_bytes = static_cast<int64_t>(part.size() * sizeof(CompareTask));
    const int64_t result_bytes = static_cast<int64_t>(part.size() * sizeof(uint64_t));
    const absl::StatusOr<int64_t> offset = Reserve(task_bytes + result_bytes);
    if (!offset.ok()) return offset.status();
    std::memcpy(host_.data() + *offset, part.data(), static_cast<size_t>(task_bytes));
    uint64_t longest = 0;
    for (size_t i = 0; i < part.size(); ++i) {
      const int64_t at = *offset + task_bytes + static_cast<int64_t>(i * sizeof(uint64_t));
      std::memcpy(host_.data() + at, &kNoDifference, sizeof(uint64_t));
      compare_offsets_.push_back(at);
      longest = std::max(longest, part[i].bytes);
    }
    const CUdeviceptr device = device_.address() + static_cast<CUdeviceptr>(*offset);
    absl::Status status = driver.Check(
        driver.MemcpyHtoDAsync(device, host_.data() + *offset,
                               static_cast<size_t>(task_bytes + result_bytes), context_.stream()),
        "cuMemcpyHtoDAsync");
    if (!status.ok()) return status;
    const uint64_t most = static_cast<uint64_t>(kBlocksPerMultiprocessor) *
                          static_cast<uint64_t>(context_.multiprocessors());
    const uint64_t blocks = std::clamp<uint64_t>(longest / kBytesPerBlock, 1, most);
    status =
        Launch(kCompareLaunch, static_cast<unsigned>(blocks), static_cast<unsigned>(part.size()),
               {device, device + static_cast<CUdeviceptr>(task_bytes)});
    if (!status.ok()) return status;
  }
  return first;
}

absl::StatusOr<int> DeviceChecker::ReadClocks() {
  constexpr int64_t kBytes = kMostMultiprocessors * sizeof(ClockMark);
  const absl::StatusOr<int64_t> offset = Reserve(kBytes);
  if (!offset.ok()) return offset.status();
  const CudaDriver& driver = context_.driver();
  const CUdeviceptr marks = device_.address() + static_cast<CUdeviceptr>(*offset);
  absl::Status status =
      driver.Check(driver.MemsetD8Async(marks, 0, static_cast<size_t>(kBytes), context_.stream()),
                   "cuMemsetD8Async");
  if (!status.ok()) return status;
  // Two blocks for each SM, so that most SMs have one.
  status = Launch(kClockLaunch, 2 * static_cast<unsigned>(context_.multiprocessors()), 1, {marks});
  if (!status.ok()) return status;
  clock_offsets_.push_back(*offset);
  return static_cast<int>(clock_offsets_.size()) - 1;
}

absl::Status DeviceChecker::Finish() {
  const CudaDriver& driver = context_.driver();
  if (used_ > 0) {
    absl::Status status =
        driver.Check(driver.MemcpyDtoHAsync(host_.data(), device_.address(),
                                            static_cast<size_t>(used_), context_.stream()),
                     "cuMemcpyDtoHAsync");
    if (!status.ok()) return status;
  }
  return context_.Synchronize();
}

const DeviceCheckResult& DeviceChecker::result(int slot) const {
  return *reinterpret_cast<const DeviceCheckResult*>(host_.data() + check_offsets_[slot]);
}

uint64_t DeviceChecker::difference(int number) const {
  uint64_t at;
  std::memcpy(&at, host_.data() + compare_offsets_[number], sizeof(at));
  return at;
}

double DeviceChecker::ClockMhz(int before, int after) const {
  const auto* first = reinterpret_cast<const ClockMark*>(host_.data() + clock_offsets_[before]);
  const auto* last = reinterpret_cast<const ClockMark*>(host_.data() + clock_offsets_[after]);
  // globaltimer ticks coarsely (1 us on Hopper, 32 us on some): shorter stretches say nothing.
  constexpr uint64_t kShortest = 500'000;
  std::vector<double> clocks;
  for (int sm = 0; sm < kMostMultiprocessors; ++sm) {
    if (first[sm].globaltimer_ns == 0 || last[sm].globaltimer_ns == 0) continue;
    const uint64_t time = last[sm].globaltimer_ns - first[sm].globaltimer_ns;
    if (time < kShortest) continue;
    clocks.push_back(static_cast<double>(last[sm].cycles - first[sm].cycles) /
                     static_cast<double>(time) * 1e3);
  }
  return clocks.empty() ? 0 : Median(clocks);
}

absl::Status DeviceChecker::Read(CUdeviceptr from, void* to, size_t bytes) {
  const CudaDriver& driver = context_.driver();
  absl::Status status =
      driver.Check(driver.MemcpyDtoHAsync(to, from, bytes, context_.stream()), "cuMemcpyDtoHAsync");
  return status.ok() ? context_.Synchronize() : status;
}

std::string DeviceChecker::Explain(int layout, const DeviceCheckResult& result, CUdeviceptr output,
                                   const DeviceReference& reference) {
  const OutputLayout& where = layouts_[layout].layout;
  const auto number = static_cast<int64_t>(result.first_wrong);
  const int bytes = Info(where.type).bytes;
  unsigned char element[8] = {};
  Expectation expected{};
  const CUdeviceptr eighth = static_cast<CUdeviceptr>(number) * sizeof(double);
  absl::Status status =
      Read(output + static_cast<CUdeviceptr>(where.Offset(number) * bytes), element, bytes);
  if (status.ok()) {
    status = Read(reference.values.address() + eighth, &expected.reference, sizeof(double));
  }
  if (status.ok()) {
    status = Read(reference.bounds.address() + eighth, &expected.bound, sizeof(double));
  }
  const std::string point = where.PointText(number);
  if (!status.ok()) return absl::StrCat(point, " is wrong, and unreadable: ", status.message());
  return absl::StrFormat("%s: got %.9g, expected %.9g, allowed +-%.3g; %d of %d elements are wrong",
                         point, LoadElement(where.type, element),
                         RoundTo(where.type, expected.reference), Allowance(where.type, expected),
                         result.wrong, where.elements());
}

}  // namespace tilewright
