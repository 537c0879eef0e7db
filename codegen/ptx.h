// Instructions of NVIDIA GPUs by name: special registers, barriers, TMA copies, wgmma, stmatrix.
//
// Each method names the section of the PTX ISA (version 8.5) that says what the instruction does.
// What LLVM 19 has an intrinsic for goes through it, the rest through inline PTX, all of it in this
// one file.
//
// Shared memory is addressed by 32-bit numbers (its window's own addresses). Every call stands at
// the module's insertion point. Not thread-safe; borrows the module.
#ifndef TILEWRIGHT_CODEGEN_PTX_H_
#define TILEWRIGHT_CODEGEN_PTX_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "codegen/kernel_module.h"
#include "schedule/element_type.h"

namespace tilewright {

// One group of wgmma instructions, committed together: for each k step, for each block of 64 rows,
//   d[block] += a[block, step] * b[step]
// with both operands in shared memory, given by the low words of their descriptors. Offsets are in
// descriptor units of 16 bytes.
struct WgmmaGroup {
  ElementType type = ElementType::kBF16;  // of both operands: f16, bf16 or e4m3
  int columns = 8;                        // N of each instruction: 8 … 256 in steps of 8
  std::vector<int> block_offsets;         // of a, one per block of 64 rows
  std::vector<int> a_step_offsets;        // one per k step
  std::vector<int> b_step_offsets;        // one per k step
  uint32_t a_high = 0;                    // high descriptor words
  uint32_t b_high = 0;
  bool a_transposed =
      false;  // the operand's rows are contiguous (MN-major), not its k; 16 bits only
  bool b_transposed = false;

  // f32 per thread.
  int accumulators() const { return static_cast<int>(block_offsets.size()) * columns / 2; }
};

class PtxBuilder {
 public:
  explicit PtxBuilder(KernelModule& module);

  // ---- Who and where (10, Special Registers); all i32
  llvm::Value* ThreadIndex();  // %tid.x
  llvm::Value* BlockIndex();   // %ctaid.x
  llvm::Value* GridBlocks();   // %nctaid.x
  llvm::Value* ClusterRank();  // %cluster_ctarank
  llvm::Value* Lane();         // %laneid
  // The value of lane 0 in all lanes (9.7.9.6, shfl.sync), so that it is known to be uniform in the
  // warp.
  llvm::Value* FirstLane(llvm::Value* value);
  // A shared pointer as a 32-bit address.
  llvm::Value* SharedAddress(llvm::Value* pointer);
  // The address in the cluster's window of the same place in another CTA (9.7.8.23, mapa).
  llvm::Value* AddressInCluster(llvm::Value* address, llvm::Value* rank);

  // ---- Barriers of a CTA (9.7.12.1, bar): `id` 0 … 15, `threads` a multiple of 32
  void Barrier(llvm::Value* id, int threads);
  void BarrierArrive(llvm::Value* id, int threads);
  // Of one warp; its writes to shared memory are seen after (9.7.12.2, bar.warp.sync).
  void WarpBarrier();
  // ---- Barrier of a cluster (9.7.12.3, barrier.cluster): all threads of all its CTAs
  void ClusterBarrier();

  // ---- mbarriers (9.7.12.15): 8 bytes each
  void MbarrierInit(llvm::Value* address, int arrivals);
  // Makes initialisations visible to the async proxy and to the cluster (fence.mbarrier_init).
  void FenceMbarrierInit();
  // Arrives and raises the bytes that the phase waits for.
  void MbarrierExpect(llvm::Value* address, llvm::Value* bytes);
  // Arrives if `condition`; no branch.
  void MbarrierArriveIf(llvm::Value* condition, llvm::Value* address);
  // The same for an address in the cluster's window.
  void MbarrierArriveInClusterIf(llvm::Value* condition, llvm::Value* address);
  // Waits until the phase of that parity is over.
  void MbarrierWait(llvm::Value* address, llvm::Value* parity);

  // ---- TMA (9.7.8.24, cp.async.bulk.tensor): coordinates i32, innermost first
  void PrefetchTensorMap(llvm::Value* map);
  void TmaLoad(llvm::Value* map, llvm::Value* to, llvm::Value* mbarrier,
               absl::Span<llvm::Value* const> coordinates);
  // To the same place in every CTA of the cluster whose bit is set; each one's mbarrier counts.
  void TmaLoadMulticast(llvm::Value* map, llvm::Value* to, llvm::Value* mbarrier,
                        absl::Span<llvm::Value* const> coordinates, int cta_mask);
  void TmaStore(llvm::Value* map, llvm::Value* from, absl::Span<llvm::Value* const> coordinates);
  // Asks for the line of L2 that holds a byte of global memory, address i64 (9.7.8.16, prefetch).
  // Not a read: whatever is written to the line later is seen by reads that follow the write.
  void PrefetchLine(llvm::Value* address);
  // Bulk groups are counted per thread (9.7.8.24.6, cp.async.bulk.wait_group).
  void BulkCommit();
  void BulkWaitRead(int groups_in_flight);  // until shared memory may be written again
  // Orders writes to shared memory by this thread before later reads by the async proxy
  // (9.7.12.4, fence.proxy.async).
  void FenceAsyncShared();

  // ---- wgmma (9.7.15): one warpgroup
  // `low` words of the descriptors; `accumulate` i32: 0 starts the sums from zero. Returns the
  // sums, which may be read only after WgmmaWait has returned them.
  std::vector<llvm::Value*> Wgmma(const WgmmaGroup& group,
                                  absl::Span<llvm::Value* const> accumulators, llvm::Value* a_low,
                                  llvm::Value* b_low, llvm::Value* accumulate);
  // Waits until at most that many groups are unfinished.
  void WgmmaWait(int groups_in_flight);
  // Waits for all, and returns the sums, readable.
  std::vector<llvm::Value*> WgmmaWaitAll(absl::Span<llvm::Value* const> accumulators);
  // Registers a thread of the warpgroup may use from here (9.7.19.5, setmaxnreg).
  void SetMaxRegisters(int registers, bool increase);

  // ---- Results
  // Two f32 as 16-bit numbers to nearest even, `low` in the low half (9.7.9.21, cvt.rn).
  llvm::Value* PackPair(ElementType type, llvm::Value* low, llvm::Value* high);
  // 8 x 8 matrices of 16-bit elements from fragments (9.7.14.5.16, stmatrix): 1, 2 or 4 registers.
  void StoreMatrix(llvm::Value* address, absl::Span<llvm::Value* const> registers, bool transposed);

  // f32 in shared memory (9.7.9.8 and 9.7.9.11, ld and st): one, or `count` (1 or 2) side by side,
  // of this CTA or at an address in the cluster's window.
  void StoreShared(llvm::Value* address, llvm::Value* value);
  std::vector<llvm::Value*> LoadShared(llvm::Value* address, int count, bool in_cluster);

  // ---- Between CTAs, through global memory (addresses i64)
  // A flag of 32 bits: raised after all that this thread knows to have been written; awaited before
  // anything is read, and lowered again (9.7.9.8 and 9.7.9.11, ld.acquire and st.release at GPU
  // scope; 8.11, Causality Order).
  void RaiseFlag(llvm::Value* address);
  void AwaitAndLowerFlag(llvm::Value* address);
  // Four f32 of 16 aligned bytes, past L1.
  void StoreQuad(llvm::Value* address, absl::Span<llvm::Value* const> values);
  std::vector<llvm::Value*> LoadQuad(llvm::Value* address);

  // ---- Dependent launch (9.7.12.13, griddepcontrol); without it both return at once
  void WaitForEarlierGrids();
  void LetLaterGridsStart();

 private:
  // A volatile, convergent piece of PTX. `result` may be void.
  llvm::Value* Asm(llvm::Type* result, const std::string& text, const std::string& constraints,
                   absl::Span<llvm::Value* const> operands);

  KernelModule& m_;
  llvm::IRBuilder<>& b_;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_PTX_H_
