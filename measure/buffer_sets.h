// BufferSets: the buffers of a workload at given sizes, many times over, so that a kernel called on
// one set after another finds none of its data in a cache (`cache=cold`). Inputs are read-only once
// filled: a kernel that writes to one stops there and then.
//
//   set 0: content 0     set 1: content 1     set 2: content 0 …
//
// Sets differ in address; a few different contents are shared among them, because each needs a
// reference.
#ifndef TILEWRIGHT_MEASURE_BUFFER_SETS_H_
#define TILEWRIGHT_MEASURE_BUFFER_SETS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "measure/guarded_memory.h"
#include "measure/launch_pool.h"
#include "schedule/workload.h"

namespace tilewright {

struct BufferSetsOptions {
  int64_t rotation_bytes = 0;  // all sets together cover at least this
  int contents = 1;            // at most
  uint64_t seed = 1;
};

// Not more than kMostSets are made, nor more than two beyond kMostBytes. Where the sets of a small
// workload do not cover the rotation, spare memory makes up the rest: it is read before each pass
// over the sets (MakeCold).
class BufferSets {
 public:
  static constexpr int kMostSets = 512;
  static constexpr int64_t kMostBytes = int64_t{2} << 30;

  // Makes and fills them. ResourceExhausted: no memory.
  static absl::StatusOr<std::unique_ptr<BufferSets>> Make(const Workload& workload, Sizes sizes,
                                                          const BufferSetsOptions& options,
                                                          LaunchPool& pool);
  ~BufferSets();

  const Sizes& sizes() const { return sizes_; }
  int sets() const { return sets_; }
  int contents() const { return contents_; }
  int ContentOf(int set) const { return set % contents_; }
  int64_t set_bytes() const { return set_bytes_; }
  int outputs() const { return outputs_per_set_; }

  // The kernel's buffers in order: parameters, then outputs.
  std::vector<void*> Buffers(int set) const;
  std::vector<const void*> Inputs(int set) const;
  const GuardedMemory::Buffer& Output(int set, int output) const {
    return outputs_->buffers()[set * outputs_per_set_ + output];
  }

  // Fills a set's outputs with a byte.
  void Poison(int set, unsigned char poison, LaunchPool& pool);
  // Which outputs may be written: all, or those of one set only, so that a stray write to another
  // set's stops the runner.
  void AllowAllOutputs();
  void AllowOutputsOf(int set);
  // The number of an output of `set` whose guard band changed, and where; -1: none.
  int FindBandDamage(int set, int64_t* offset) const;
  void RepairBands(int set);
  // True if one pass over all sets does not cover the rotation: then MakeCold must precede each
  // pass.
  bool needs_spare() const { return !spare_.empty(); }
  // Reads whatever else the rotation holds, so that the sets [first, first + count), modulo sets(),
  // are in no cache.
  void MakeCold(int first, int count, LaunchPool& pool) const;

 private:
  BufferSets() = default;
  absl::Status Map(const Workload& workload);
  void FillInputs(const Workload& workload, uint64_t seed, LaunchPool& pool);

  Sizes sizes_;
  int sets_ = 0;
  int contents_ = 1;
  int inputs_per_set_ = 0;
  int outputs_per_set_ = 0;
  int64_t set_bytes_ = 0;
  int writable_set_ = -1;  // -1: all
  std::unique_ptr<GuardedMemory> inputs_;
  std::unique_ptr<GuardedMemory> outputs_;
  std::vector<char> spare_;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_BUFFER_SETS_H_
