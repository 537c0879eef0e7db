// How an operand of a contraction gets from a GPU's memory to shared memory, step of k by step, and
// how it lies there. Plans decide it, copies (codegen/shared_copies.h) and kernels follow it.
//
// An operand whose elements are used as they are stored, and lie contiguously along one of its axes
// at aligned addresses, is copied by cp.async as it lies. Any other is read element by element
// through registers and its expression applied on the way.
#ifndef TILEWRIGHT_SCHEDULE_SHARED_OPERAND_H_
#define TILEWRIGHT_SCHEDULE_SHARED_OPERAND_H_

#include <cstdint>

#include "schedule/match.h"
#include "schedule/workload.h"

namespace tilewright {

// An operand's memory, as far as copies care; the same for every schedule.
struct OperandSource {
  bool plain = false;        // linear, and the stored element itself is what is wanted
  int aligned_bytes = 0;     // every contiguous line begins at a multiple of it; at most 16
  bool along_depth = false;  // contiguous along depth, else along rows
  ElementType stored = ElementType::kF32;
};
// `rounded_later`: a tf32() of the element counts as the element; who multiplies it rounds it.
OperandSource StudySource(const Workload& workload, const ContractionOperand& operand,
                          bool rounded_later = false);

struct SharedOperand {
  // Copied as it lies by cp.async of `chunk_bytes` (4, 8 or 16); else element by element.
  bool copied = false;
  int chunk_bytes = 0;
  // In shared memory a row's depths are neighbours: [row][depth]. Else [depth][row].
  bool depth_contiguous = false;
  // Element by element: neighbouring threads read neighbouring depths, not rows.
  bool threads_along_depth = false;
  ElementType type = ElementType::kF32;  // of the elements in shared memory
  int64_t tile = 0;                      // rows of a tile
  int64_t pitch_bytes = 0;               // from one row (or depth) to the next
  int64_t stage_bytes = 0;               // of one step
};

// `asynchronous`: cp.async may be used, since a step is on its way while another is worked on.
// `type` and `deep` say what elements that go through registers become, and how they lie.
SharedOperand PlaceOperand(const OperandSource& source, const ContractionOperand& operand,
                           int64_t tile, int64_t tile_k, bool asynchronous, ElementType type,
                           bool deep);

// An estimate of the registers that a thread of `threads` needs for its share of a step: addresses
// and a condition for each chunk, and a value too for each element that goes through registers,
// more where indices are computed one by one.
int64_t CopyRegisters(const SharedOperand& place, const ContractionOperand& operand, int64_t tile_k,
                      int64_t threads);

// Where a tile of the output passes through shared memory: elements from a row to the next, so that
// the rows that a warp writes together lie in different banks; and what the tile takes.
inline int64_t StagedPitch(int64_t tile_n) { return tile_n + 8; }
inline int64_t StagedBytes(int64_t tile_m, int64_t tile_n, ElementType accumulator) {
  return tile_m * StagedPitch(tile_n) * Info(accumulator).bytes;
}

}  // namespace tilewright

#endif  // TILEWRIGHT_SCHEDULE_SHARED_OPERAND_H_
