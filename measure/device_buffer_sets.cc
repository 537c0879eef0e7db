#include "measure/device_buffer_sets.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "measure/cuda_kernel.h"
#include "measure/inputs.h"

namespace tilewright {
namespace {

// Buffers begin where cuMemAlloc's would: aligned to 512.
constexpr int64_t kBufferAlignment = 512;
constexpr int kFewestRotatedSets = 4;

int64_t AlignUp(int64_t value) {
  return (value + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
}

int SetsThatCover(int64_t set_bytes, int64_t rotation_bytes) {
  if (rotation_bytes == 0) return 1;
  const int64_t bytes = std::max<int64_t>(set_bytes, 1);
  const int64_t wanted =
      std::max<int64_t>((rotation_bytes + bytes - 1) / bytes, kFewestRotatedSets);
  const int64_t affordable = std::max<int64_t>(DeviceBufferSets::kMostBytes / bytes, 2);
  return static_cast<int>(
      std::min({wanted, affordable, static_cast<int64_t>(DeviceBufferSets::kMostSets)}));
}

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceBufferSets>> DeviceBufferSets::Make(
    CudaContext& context, const Workload& workload, Sizes sizes, const BufferSetsOptions& options,
    LaunchPool& pool) {
  auto sets = std::unique_ptr<DeviceBufferSets>(new DeviceBufferSets(context));
  sets->sizes_ = std::move(sizes);
  sets->Lay(workload);
  sets->rotation_bytes_ = options.rotation_bytes;
  sets->sets_ = SetsThatCover(sets->set_bytes_, options.rotation_bytes);
  sets->contents_ = std::min(options.contents, sets->sets_);
  if (absl::Status status = sets->Allocate(); !status.ok()) return status;
  if (absl::Status status = sets->WriteBands(); !status.ok()) return status;
  if (absl::Status status = sets->FillInputs(workload, options.seed, pool); !status.ok()) {
    return status;
  }
  if (absl::Status status = context.Synchronize(); !status.ok()) return status;
  return sets;
}

// Places the buffers of a set and the bands between them. A band reaches from a buffer's last byte
// to the next one's first, so that the first byte beyond a buffer is watched.
void DeviceBufferSets::Lay(const Workload& workload) {
  inputs_ = static_cast<int>(workload.parameters().size());
  for (absl::Span<const int> tensors : {workload.parameters(), workload.outputs()}) {
    for (int tensor : tensors) bytes_.push_back(workload.BufferBytes(tensor, sizes_));
  }
  int64_t next = 0;  // end of the buffer before
  for (size_t b = 0; b < bytes_.size(); ++b) {
    const int64_t offset = AlignUp(next + kDeviceBandBytes);
    // A band belongs to the buffer ahead of it; the first, which has none, to the one behind it.
    const int owner = b == 0 ? 0 : static_cast<int>(b) - 1;
    const int64_t owner_offset = b == 0 ? offset : offsets_[owner];
    bands_.push_back({next, offset - next, owner, next - owner_offset});
    offsets_.push_back(offset);
    set_bytes_ += bytes_[b];
    next = offset + bytes_[b];
  }
  stride_ = AlignUp(next + kDeviceBandBytes);
  const int last = static_cast<int>(bytes_.size()) - 1;
  bands_.push_back({next, stride_ - next, last, next - offsets_[last]});
}

absl::Status DeviceBufferSets::Allocate() {
  absl::StatusOr<DeviceMemory> memory = DeviceMemory::Allocate(context_, sets_ * stride_);
  if (!memory.ok()) return memory.status();
  memory_ = *std::move(memory);
  base_ = memory_.address();
  int64_t originals = 0;
  for (int content = 0; content < contents_; ++content) {
    std::vector<int64_t>& offsets = original_offsets_.emplace_back();
    for (int p = 0; p < inputs_; ++p) {
      offsets.push_back(originals);
      originals += AlignUp(bytes_[p]);
    }
  }
  memory = DeviceMemory::Allocate(context_, originals);
  if (!memory.ok()) return memory.status();
  originals_ = *std::move(memory);
  if (rotation_bytes_ == 0) return absl::OkStatus();
  memory = DeviceMemory::Allocate(context_, rotation_bytes_);
  if (!memory.ok()) return memory.status();
  cold_ = *std::move(memory);
  return absl::OkStatus();
}

absl::Status DeviceBufferSets::WriteBands() {
  int64_t longest = kDeviceBandBytes;
  for (const Band& band : bands_) longest = std::max(longest, band.bytes);
  std::vector<unsigned char> pattern(static_cast<size_t>(longest));
  for (size_t i = 0; i < pattern.size(); ++i) {
    pattern[i] = kDeviceBandPattern[i % sizeof(kDeviceBandPattern)];
  }
  absl::StatusOr<DeviceMemory> memory = DeviceMemory::Allocate(context_, longest);
  if (!memory.ok()) return memory.status();
  pattern_ = *std::move(memory);
  const CudaDriver& driver = context_.driver();
  absl::Status status = driver.Check(
      driver.MemcpyHtoDAsync(pattern_.address(), pattern.data(), pattern.size(), context_.stream()),
      "cuMemcpyHtoDAsync");
  for (int set = 0; set < sets_ && status.ok(); ++set) status = RepairBands(set);
  return status;
}

absl::Status DeviceBufferSets::RepairBands(int set) {
  const CudaDriver& driver = context_.driver();
  for (const Band& band : bands_) {
    absl::Status status =
        driver.Check(driver.MemcpyDtoDAsync(base_ + set * stride_ + band.offset, pattern_.address(),
                                            static_cast<size_t>(band.bytes), context_.stream()),
                     "cuMemcpyDtoDAsync");
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status DeviceBufferSets::FillInputs(const Workload& workload, uint64_t seed,
                                          LaunchPool& pool) {
  const CudaDriver& driver = context_.driver();
  for (int content = 0; content < contents_; ++content) {
    for (int p = 0; p < inputs_; ++p) {
      const ElementType type = workload.layout(workload.parameters()[p]).type;
      const uint64_t stream = static_cast<uint64_t>(content) * 4096 + p;
      std::vector<std::byte> data(static_cast<size_t>(bytes_[p]));
      pool.ForRanges(bytes_[p] / Info(type).bytes, [&](int64_t begin, int64_t end) {
        FillNormal(type, seed, stream, begin, end, data.data());
      });
      absl::Status status =
          driver.Check(driver.MemcpyHtoDAsync(originals_.address() + original_offsets_[content][p],
                                              data.data(), data.size(), context_.stream()),
                       "cuMemcpyHtoDAsync");
      // The copy may still read from `data`.
      if (status.ok()) status = context_.Synchronize();
      if (!status.ok()) return status;
      if (content == 0) host_inputs_.push_back(std::move(data));
    }
  }
  for (int set = 0; set < sets_; ++set) {
    for (int p = 0; p < inputs_; ++p) {
      absl::Status status = RepairInput(set, p);
      if (!status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

absl::Status DeviceBufferSets::RepairInput(int set, int input) {
  const CudaDriver& driver = context_.driver();
  return driver.Check(
      driver.MemcpyDtoDAsync(Buffer(set, input),
                             originals_.address() + original_offsets_[ContentOf(set)][input],
                             static_cast<size_t>(bytes_[input]), context_.stream()),
      "cuMemcpyDtoDAsync");
}

std::vector<CUdeviceptr> DeviceBufferSets::Buffers(int set) const {
  std::vector<CUdeviceptr> buffers;
  for (size_t b = 0; b < bytes_.size(); ++b) buffers.push_back(Buffer(set, static_cast<int>(b)));
  return buffers;
}

std::vector<const void*> DeviceBufferSets::HostInputs() const {
  std::vector<const void*> inputs;
  for (const std::vector<std::byte>& input : host_inputs_) inputs.push_back(input.data());
  return inputs;
}

absl::Status DeviceBufferSets::Poison(int set, unsigned char poison) {
  const CudaDriver& driver = context_.driver();
  for (int o = 0; o < outputs(); ++o) {
    absl::Status status =
        driver.Check(driver.MemsetD8Async(Output(set, o), poison,
                                          static_cast<size_t>(OutputBytes(o)), context_.stream()),
                     "cuMemsetD8Async");
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status DeviceBufferSets::MakeCold() {
  const CudaDriver& driver = context_.driver();
  return driver.Check(driver.MemsetD8Async(cold_.address(), 0, static_cast<size_t>(cold_.bytes()),
                                           context_.stream()),
                      "cuMemsetD8Async");
}

void DeviceBufferSets::AppendTasks(Part part, int set, std::vector<CompareTask>* tasks,
                                   std::vector<Watched>* watched) const {
  const CUdeviceptr start = base_ + set * stride_;
  if (part == Part::kBands) {
    for (const Band& band : bands_) {
      tasks->push_back(
          {start + band.offset, pattern_.address(), static_cast<uint64_t>(band.bytes)});
      watched->push_back({part, set, band.buffer, band.from_buffer});
    }
    return;
  }
  for (int p = 0; p < inputs_; ++p) {
    tasks->push_back({Buffer(set, p), originals_.address() + original_offsets_[ContentOf(set)][p],
                      static_cast<uint64_t>(bytes_[p])});
    watched->push_back({part, set, p, 0});
  }
}

std::string DeviceBufferSets::DescribeDamage(const Watched& watched, uint64_t at) const {
  // Of the two buffers that a band lies between, the nearer.
  const int64_t place = offsets_[watched.buffer] + watched.offset + static_cast<int64_t>(at);
  int buffer = watched.buffer;
  if (buffer + 1 < static_cast<int>(offsets_.size()) &&
      offsets_[buffer + 1] - place < place - (offsets_[buffer] + bytes_[buffer])) {
    ++buffer;
  }
  const bool input = buffer < inputs_;
  return absl::StrCat("byte ", place - offsets_[buffer], " of ", input ? "input " : "output ",
                      input ? buffer : buffer - inputs_, ", which has ", bytes_[buffer], " B (set ",
                      watched.set, ")");
}

}  // namespace tilewright
