// The output of a contraction as tiles that a grid's blocks take in turn, and the epilogue of a
// tile, on a GPU. Shared by the writers that work tile by tile.
//
// Not thread-safe; one per entry. Borrows all it is made of.
#ifndef TILEWRIGHT_CODEGEN_OUTPUT_TILES_H_
#define TILEWRIGHT_CODEGEN_OUTPUT_TILES_H_

#include <functional>
#include <vector>

#include "codegen/contraction_reads.h"
#include "codegen/kernel_module.h"

namespace tilewright {

class OutputTiles {
 public:
  struct Shape {
    int64_t tile_m = 0;
    int64_t tile_n = 0;
    int group_m = 1;  // rows of tiles that are taken together, column by column
    int grid = 1;     // blocks
    int block = 0;    // threads
    // The grid has a block for each tile at any sizes: there is no loop, from which LLVM would move
    // what tiles share, at the cost of registers.
    bool one_each = false;
  };
  OutputTiles(KernelModule& module, const Contraction& contraction,
              const KernelModule::DeviceEntry& entry, const ContractionReads& reads,
              const Shape& shape);

  // The thread's number in its block, i64.
  llvm::Value* thread() const { return thread_; }

  // body() for each tile of the block, of which the following then say:
  void ForTiles(const std::function<void()>& body);
  const std::vector<llvm::Value*>& indices() const { return indices_; }  // of its batch
  llvm::Value* first_row() const { return first_row_; }
  llvm::Value* first_column() const { return first_column_; }

  // Finishes and stores the sum at a row and column of the tile, if the output has them.
  void Finish(llvm::Value* row, llvm::Value* column, llvm::Value* sum);
  // By way of shared memory, StagedBytes of it: the block's threads first Stage theirs, then
  // FinishStaged stores them, neighbouring threads neighbouring columns. A barrier must come
  // before, and before shared memory is used again one comes inside.
  void Stage(llvm::Value* row, llvm::Value* column, llvm::Value* sum);
  void FinishStaged();

 private:
  llvm::Value* StagedAt(llvm::Value* row, llvm::Value* column);

  KernelModule& m_;
  llvm::IRBuilder<>& b_;
  const Contraction& c_;
  const KernelModule::DeviceEntry& entry_;
  const ContractionReads& reads_;
  const Shape shape_;
  llvm::Value* rows_;
  llvm::Value* columns_;
  llvm::Value* thread_;
  std::vector<llvm::Value*> indices_;
  llvm::Value* first_row_ = nullptr;
  llvm::Value* first_column_ = nullptr;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_OUTPUT_TILES_H_
