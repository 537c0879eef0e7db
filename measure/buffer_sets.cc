#include "measure/buffer_sets.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "measure/crash_report.h"
#include "measure/inputs.h"

namespace tilewright {
namespace {

constexpr int kFewestSets = 4;

int NumberOfSets(int64_t set_bytes, int64_t rotation_bytes) {
  const int64_t bytes = std::max<int64_t>(set_bytes, 1);
  const int64_t wanted = std::max<int64_t>((rotation_bytes + bytes - 1) / bytes, kFewestSets);
  const int64_t affordable = std::max<int64_t>(BufferSets::kMostBytes / bytes, 2);
  return static_cast<int>(
      std::min({wanted, affordable, static_cast<int64_t>(BufferSets::kMostSets)}));
}

}  // namespace

absl::StatusOr<std::unique_ptr<BufferSets>> BufferSets::Make(const Workload& workload, Sizes sizes,
                                                             const BufferSetsOptions& options,
                                                             LaunchPool& pool) {
  auto sets = std::unique_ptr<BufferSets>(new BufferSets);
  sets->sizes_ = std::move(sizes);
  sets->inputs_per_set_ = static_cast<int>(workload.parameters().size());
  sets->outputs_per_set_ = static_cast<int>(workload.outputs().size());
  for (int tensor : workload.parameters()) {
    sets->set_bytes_ += workload.BufferBytes(tensor, sets->sizes_);
  }
  for (int tensor : workload.outputs()) {
    sets->set_bytes_ += workload.BufferBytes(tensor, sets->sizes_);
  }
  sets->sets_ =
      options.rotation_bytes == 0 ? 1 : NumberOfSets(sets->set_bytes_, options.rotation_bytes);
  sets->contents_ = std::min(options.contents, sets->sets_);
  const int64_t covered = sets->sets_ * sets->set_bytes_;
  // Written, so that it is memory of its own and not the system's page of zeros.
  if (covered < options.rotation_bytes) sets->spare_.assign(options.rotation_bytes - covered, 1);
  if (absl::Status status = sets->Map(workload); !status.ok()) return status;
  sets->FillInputs(workload, options.seed, pool);
  WatchMemory(sets->inputs_.get(), MemoryRole::kInputs, sets->inputs_per_set_);
  WatchMemory(sets->outputs_.get(), MemoryRole::kOutputs, sets->outputs_per_set_);
  return sets;
}

BufferSets::~BufferSets() {
  if (inputs_) UnwatchMemory(inputs_.get());
  if (outputs_) UnwatchMemory(outputs_.get());
}

absl::Status BufferSets::Map(const Workload& workload) {
  std::vector<int64_t> input_bytes;
  std::vector<int64_t> output_bytes;
  for (int set = 0; set < sets_; ++set) {
    for (int tensor : workload.parameters()) {
      input_bytes.push_back(workload.BufferBytes(tensor, sizes_));
    }
    for (int tensor : workload.outputs()) {
      output_bytes.push_back(workload.BufferBytes(tensor, sizes_));
    }
  }
  absl::StatusOr<std::unique_ptr<GuardedMemory>> inputs = GuardedMemory::Map(input_bytes);
  if (!inputs.ok()) return inputs.status();
  inputs_ = *std::move(inputs);
  absl::StatusOr<std::unique_ptr<GuardedMemory>> outputs = GuardedMemory::Map(output_bytes);
  if (!outputs.ok()) return outputs.status();
  outputs_ = *std::move(outputs);
  return absl::OkStatus();
}

void BufferSets::FillInputs(const Workload& workload, uint64_t seed, LaunchPool& pool) {
  for (int content = 0; content < contents_; ++content) {
    for (int p = 0; p < inputs_per_set_; ++p) {
      const int tensor = workload.parameters()[p];
      const ElementType type = workload.layout(tensor).type;
      const uint64_t stream = static_cast<uint64_t>(content) * 4096 + p;
      const GuardedMemory::Buffer& buffer = inputs_->buffers()[content * inputs_per_set_ + p];
      pool.ForRanges(buffer.bytes / Info(type).bytes, [&](int64_t begin, int64_t end) {
        FillNormal(type, seed, stream, begin, end, buffer.data);
      });
    }
  }
  // The other sets are copies.
  const int64_t copied = static_cast<int64_t>(sets_ - contents_) * inputs_per_set_;
  pool.ForRanges(copied, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t number = static_cast<int64_t>(contents_) * inputs_per_set_ + i;
      const int set = static_cast<int>(number / inputs_per_set_);
      const int p = static_cast<int>(number % inputs_per_set_);
      const GuardedMemory::Buffer& to = inputs_->buffers()[number];
      memcpy(to.data, inputs_->buffers()[ContentOf(set) * inputs_per_set_ + p].data, to.bytes);
    }
  });
  inputs_->ProtectAll(GuardedMemory::Access::kRead);
}

std::vector<void*> BufferSets::Buffers(int set) const {
  std::vector<void*> buffers;
  for (int p = 0; p < inputs_per_set_; ++p) {
    buffers.push_back(inputs_->buffers()[set * inputs_per_set_ + p].data);
  }
  for (int o = 0; o < outputs_per_set_; ++o) buffers.push_back(Output(set, o).data);
  return buffers;
}

std::vector<const void*> BufferSets::Inputs(int set) const {
  std::vector<const void*> inputs;
  for (int p = 0; p < inputs_per_set_; ++p) {
    inputs.push_back(inputs_->buffers()[set * inputs_per_set_ + p].data);
  }
  return inputs;
}

void BufferSets::Poison(int set, unsigned char poison, LaunchPool& pool) {
  for (int o = 0; o < outputs_per_set_; ++o) {
    const GuardedMemory::Buffer& buffer = Output(set, o);
    if (buffer.bytes < (64 << 10)) {
      memset(buffer.data, poison, buffer.bytes);
      continue;
    }
    pool.ForRanges(buffer.bytes, [&](int64_t begin, int64_t end) {
      memset(buffer.data + begin, poison, end - begin);
    });
  }
}

void BufferSets::AllowAllOutputs() {
  outputs_->ProtectAll(GuardedMemory::Access::kReadWrite);
  writable_set_ = -1;
  // Linux before 5.19 maps a page writable only at the first write after mprotect: that fault must
  // not be timed.
  constexpr int64_t kPage = 4096;
  for (const GuardedMemory::Buffer& buffer : outputs_->buffers()) {
    for (int64_t i = 0; i < buffer.bytes; i += kPage) {
      volatile std::byte* byte = buffer.data + i;
      *byte = *byte;
    }
    volatile std::byte* last = buffer.data + buffer.bytes - 1;
    *last = *last;
  }
}

void BufferSets::AllowOutputsOf(int set) {
  if (writable_set_ == set) return;
  if (writable_set_ < 0) {
    outputs_->ProtectAll(GuardedMemory::Access::kRead);
  } else {
    outputs_->Protect(writable_set_ * outputs_per_set_, outputs_per_set_,
                      GuardedMemory::Access::kRead);
  }
  outputs_->Protect(set * outputs_per_set_, outputs_per_set_, GuardedMemory::Access::kReadWrite);
  writable_set_ = set;
}

int BufferSets::FindBandDamage(int set, int64_t* offset) const {
  for (int o = 0; o < outputs_per_set_; ++o) {
    *offset = outputs_->FindBandDamage(set * outputs_per_set_ + o);
    if (*offset != 0) return o;
  }
  return -1;
}

void BufferSets::RepairBands(int set) {
  for (int o = 0; o < outputs_per_set_; ++o) outputs_->RepairBands(set * outputs_per_set_ + o);
}

void BufferSets::MakeCold(int first, int count, LaunchPool& pool) const {
  constexpr int64_t kLine = 64;
  std::atomic<uint64_t> sum{0};
  const auto read = [&](const void* data, int64_t bytes) {
    const auto* p = static_cast<const unsigned char*>(data);
    uint64_t part = 0;
    for (int64_t i = 0; i < bytes; i += kLine) part += p[i];
    sum.fetch_add(part, std::memory_order_relaxed);
  };
  if (count < sets_) {
    pool.ForRanges(sets_ - count, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int set = static_cast<int>((first + count + i) % sets_);
        for (int p = 0; p < inputs_per_set_; ++p) {
          const GuardedMemory::Buffer& buffer = inputs_->buffers()[set * inputs_per_set_ + p];
          read(buffer.data, buffer.bytes);
        }
        for (int o = 0; o < outputs_per_set_; ++o) read(Output(set, o).data, Output(set, o).bytes);
      }
    });
  }
  if (!spare_.empty()) {
    pool.ForRanges(static_cast<int64_t>(spare_.size()),
                   [&](int64_t begin, int64_t end) { read(spare_.data() + begin, end - begin); });
  }
}

}  // namespace tilewright
