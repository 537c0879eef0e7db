// The walk of a contraction.wgmma kernel over the tiles of its output: which tile a CTA takes next.
//
// Tiles (pairs of them where CTAs work in pairs) are numbered so that `group` of them lie side by
// side along the raster axis before the next ones of the other axis follow: CTAs that run at the
// same time then read few different rows and columns. Producer and consumers walk alike.
#ifndef TILEWRIGHT_CODEGEN_WGMMA_TILES_H_
#define TILEWRIGHT_CODEGEN_WGMMA_TILES_H_

#include <functional>
#include <vector>

#include "codegen/wgmma_kernel.h"

namespace tilewright {

// One CTA's tile; i32.
struct WgmmaTile {
  llvm::Value* row;  // of the output on the instruction's sides
  llvm::Value* column;
  llvm::Value* batch;                         // position among all batch axes
  std::vector<llvm::Value*> batch_positions;  // by Contraction::batch
  llvm::Value* another;                       // i1: this CTA has a tile after this one
  // This CTA's part of the tile's k: blocks `first_block` … first_block + blocks - 1.
  llvm::Value* first_block;
  llvm::Value* blocks;
  // Stream-K: where the tile's first block stands among those of all split tiles, all ones for a
  // tile that is not split; and whether the part has the tile's last block (i1).
  llvm::Value* first_unit;
  llvm::Value* ends;
};

class TileWalk {
 public:
  explicit TileWalk(WgmmaKernel& kernel);

  // body(tile) for this CTA's tiles number first, first + step, … of its own walk.
  // With stream-K: body(part) for this CTA's share of the split tiles, from its last part to its
  // first, then for its whole tiles; `first` is 0 and `step` 1.
  void ForEach(llvm::Value* first, int step, const std::function<void(const WgmmaTile&)>& body);

  // This CTA's first tile without stream-K, and whether there is one (i1).
  WgmmaTile First() { return At(walker_); }
  llvm::Value* HasFirst() const;

  // This CTA's number, or its pair's.
  llvm::Value* walker() const { return walker_; }
  // The first of a walker's share of the split tiles' k blocks, numbered through all of them.
  llvm::Value* ShareBegin(llvm::Value* walker) const;

 private:
  WgmmaTile At(llvm::Value* number);
  llvm::Value* SplitTileCount() const;
  void ForEachPart(const std::function<void(const WgmmaTile&)>& body);

  WgmmaKernel& k_;
  llvm::Value* along_;   // tiles (or pairs) along the raster axis
  llvm::Value* across_;  // and the other one
  llvm::Value* count_;   // of all batches
  llvm::Value* walker_;
  int walkers_;
  llvm::Value* split_ = nullptr;  // tiles split along k; null without stream-K
};

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_WGMMA_TILES_H_
