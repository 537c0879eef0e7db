// The end of a consumer's tile: from sums in registers to the output in memory.
//
// Staged (plan.tma_store): groups of `store_columns` columns are finished, rounded, written to a
// staging area by stmatrix and copied out by TMA, which also drops what lies outside the output.
// By rows (plan.row_store): each warp writes its 16 rows to an area of its own and stores them row
// by row. Direct: each thread stores its elements, those that exist.
#ifndef TILEWRIGHT_CODEGEN_WGMMA_EPILOGUE_H_
#define TILEWRIGHT_CODEGEN_WGMMA_EPILOGUE_H_

#include <vector>

#include "codegen/contraction_reads.h"
#include "codegen/wgmma_kernel.h"
#include "codegen/wgmma_tiles.h"

namespace tilewright {

// Named barriers: 0 is __syncthreads' own, consumers have 1 … 3, ping-pong turns follow.
inline constexpr int kFirstConsumerBarrier = 1;

// True if two neighbours along n, the first at an even place, are stored at once as 4 bytes: 16-bit
// output, contiguous along n, with an even number of them and even strides at all sizes.
bool StoresInPairs(const Workload& workload, const Contraction& contraction);
// Raises the alignment that the domain demands of the output for such stores.
void DemandPairAlignment(const ContractionWgmmaPlan& plan, KernelModule* module);

// One per kernel; borrows it.
class WgmmaEpilogue {
 public:
  explicit WgmmaEpilogue(WgmmaKernel& kernel);

  // All threads of a consumer; `sums` as EmitMainloop returns them.
  void Emit(const WgmmaTile& tile, const std::vector<llvm::Value*>& sums);
  // After the last tile: shared memory must outlive the copies that read it.
  void Finish();

 private:
  // Two neighbouring sums of one row: columns `column` and the next, offsets in the tile.
  struct Pair {
    llvm::Value* first;
    llvm::Value* second;
  };
  // Sums of block `block`, columns 8 * piece …, rows lane / 4 + 8 * half.
  Pair SumsOf(int block, int piece, int half) const;
  // The same after the epilogue.
  Pair Finished(int block, int piece, int half);
  llvm::Value* Evaluate(llvm::Value* sum, llvm::Value* row, llvm::Value* column, int lanes);
  // Where the output has what this thread holds, on the instruction's sides, i32.
  llvm::Value* Row(int block, int half) const;
  llvm::Value* RowAt(llvm::Value* place) const;  // of a place among this consumer's rows
  llvm::Value* Column(int piece, int i) const;
  llvm::Value* ColumnInTile(int piece, int i) const;

  void EmitStaged();
  void StageGroup(int first_column, int end_column, llvm::Value* buffer);
  // A store unit's 8-column pieces `first` … `end`, as 16 x 16 fragments.
  void StageUnit(int first_piece, int end_piece, llvm::Value* unit);
  llvm::Value* FragmentAddress(int block, int piece, int pieces, llvm::Value* unit) const;
  void CopyOut(int first_column, int end_column, llvm::Value* buffer);
  void EmitDirect();
  void EmitRows();
  void StoreRows(int block, llvm::Value* slab);

  WgmmaKernel& k_;
  ContractionReads reads_;
  ElementType output_type_;
  bool pairs_;  // neighbouring columns are inside, and stored, together
  llvm::Value* lane_;
  llvm::Value* warp_;     // in its warpgroup
  llvm::Value* barrier_;  // the named barrier of this consumer

  // Of the tile being finished.
  const WgmmaTile* tile_ = nullptr;
  const std::vector<llvm::Value*>* sums_ = nullptr;
  llvm::Value* first_row_ = nullptr;   // of this consumer
  std::vector<llvm::Value*> indices_;  // of the batch; empty where the epilogue is plain
};

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_WGMMA_EPILOGUE_H_
