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
};

class TileWalk {
 public:
  explicit TileWalk(WgmmaKernel& kernel);

  // body(tile) for this CTA's tiles number first, first + step, … of its own walk.
  void ForEach(llvm::Value* first, int step, const std::function<void(const WgmmaTile&)>& body);

 private:
  WgmmaTile At(llvm::Value* number);

  WgmmaKernel& k_;
  llvm::Value* along_;   // tiles (or pairs) along the raster axis
  llvm::Value* across_;  // and the other one
  llvm::Value* count_;   // of all batches
};

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_WGMMA_TILES_H_
