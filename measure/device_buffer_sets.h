// DeviceBufferSets: a workload's buffers on a GPU, many times over, as BufferSets has them on a
// CPU: rotated so that no call finds its data in L2, a few contents shared among the sets, guard
// bands around every buffer.
//
//   band | A | band | B | band | C | band      one set; a set's buffers lie one after another
//
// Contents are made on the host (measure/inputs.h, the same on every machine), uploaded once and
// copied on the device.
#ifndef TILEWRIGHT_MEASURE_DEVICE_BUFFER_SETS_H_
#define TILEWRIGHT_MEASURE_DEVICE_BUFFER_SETS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "codegen/device_check.h"
#include "measure/buffer_sets.h"
#include "measure/cuda_context.h"
#include "measure/launch_pool.h"
#include "schedule/workload.h"

namespace tilewright {

class DeviceBufferSets {
 public:
  // As many as a burst of the finals has calls: before a burst that does not cover the rotation L2
  // is overwritten (MakeCold), and no set comes twice in it. All of them are checked in finals.
  static constexpr int kMostSets = 1024;
  static constexpr int64_t kMostBytes = int64_t{16} << 30;

  // `pool`: host threads that make the contents. ResourceExhausted: no memory.
  static absl::StatusOr<std::unique_ptr<DeviceBufferSets>> Make(CudaContext& context,
                                                                const Workload& workload,
                                                                Sizes sizes,
                                                                const BufferSetsOptions& options,
                                                                LaunchPool& pool);

  const Sizes& sizes() const { return sizes_; }
  int sets() const { return sets_; }
  int contents() const { return contents_; }
  int ContentOf(int set) const { return set % contents_; }
  int64_t set_bytes() const { return set_bytes_; }
  int inputs() const { return inputs_; }
  int outputs() const { return static_cast<int>(bytes_.size()) - inputs_; }

  // The kernel's buffers in order: parameters, then outputs.
  std::vector<CUdeviceptr> Buffers(int set) const;
  CUdeviceptr Buffer(int set, int buffer) const { return base_ + set * stride_ + offsets_[buffer]; }
  CUdeviceptr Output(int set, int output) const { return Buffer(set, inputs_ + output); }
  int64_t BufferBytes(int buffer) const { return bytes_[buffer]; }
  int64_t OutputBytes(int output) const { return bytes_[inputs_ + output]; }
  // The inputs of content 0 on the host, for the interpreter; dropped by DropHostInputs.
  std::vector<const void*> HostInputs() const;
  void DropHostInputs() { host_inputs_.clear(); }

  // Enqueues filling a set's outputs with a byte.
  absl::Status Poison(int set, unsigned char poison);
  // Enqueues writing over a piece of memory as large as the rotation, so that nothing of the sets
  // stays in L2. Precondition: options.rotation_bytes > 0.
  absl::Status MakeCold();
  // True if `calls` on successive sets do not cover the rotation, so that MakeCold must come before
  // them each time.
  bool NeedsCold(int calls) const { return calls * set_bytes_ < rotation_bytes_; }

  // What must hold at any time: bands keep the pattern, inputs their content. Tasks for the compare
  // kernel; DescribeDamage says what a difference at byte `at` of task `number` of a list means.
  enum class Part { kBands, kInputs };
  struct Watched {
    Part part;
    int set;
    int buffer;
    int64_t offset;  // of the task's first byte from the buffer's
  };
  void AppendTasks(Part part, int set, std::vector<CompareTask>* tasks,
                   std::vector<Watched>* watched) const;
  // Bytes from the buffer's first, and what it is: "byte -3 of output 0, which has 4096 B".
  std::string DescribeDamage(const Watched& watched, uint64_t at) const;
  // Enqueue writing all bands of a set, or one of its inputs, again.
  absl::Status RepairBands(int set);
  absl::Status RepairInput(int set, int input);
  // The band pattern on the device, kDeviceBandBytes long and more.
  CUdeviceptr pattern() const { return pattern_.address(); }

 private:
  struct Band {
    int64_t offset;  // from the set's beginning
    int64_t bytes;
    int buffer;  // beside which it lies, and where it begins from that buffer's first byte
    int64_t from_buffer;
  };

  explicit DeviceBufferSets(CudaContext& context) : context_(context) {}
  void Lay(const Workload& workload);
  absl::Status Allocate();
  absl::Status WriteBands();
  absl::Status FillInputs(const Workload& workload, uint64_t seed, LaunchPool& pool);

  CudaContext& context_;
  Sizes sizes_;
  int sets_ = 0;
  int contents_ = 1;
  int inputs_ = 0;
  int64_t set_bytes_ = 0;
  int64_t rotation_bytes_ = 0;
  std::vector<int64_t> bytes_;    // by buffer
  std::vector<int64_t> offsets_;  // by buffer, from the set's beginning
  std::vector<Band> bands_;       // of a set
  int64_t stride_ = 0;            // from set to set
  DeviceMemory memory_;
  CUdeviceptr base_ = 0;
  DeviceMemory pattern_;
  DeviceMemory originals_;  // each content's inputs, one after another, never given to a kernel
  std::vector<std::vector<int64_t>> original_offsets_;  // by content, then input
  DeviceMemory cold_;
  std::vector<std::vector<std::byte>> host_inputs_;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_DEVICE_BUFFER_SETS_H_
