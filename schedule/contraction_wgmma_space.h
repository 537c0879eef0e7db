// What contraction.wgmma may choose: its decisions and constraints, and the quantities both they
// and the plan compute.
#ifndef TILEWRIGHT_SCHEDULE_CONTRACTION_WGMMA_SPACE_H_
#define TILEWRIGHT_SCHEDULE_CONTRACTION_WGMMA_SPACE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "schedule/match.h"
#include "schedule/space_writer.h"
#include "schedule/target.h"

namespace tilewright {

// Bytes of k in one row of a 128-byte swizzle atom: 64 elements of 16 bits, 128 of 8 bits.
inline constexpr int kSwizzleBytes = 128;
// Bytes of a line of L2, which a prefetch asks for.
inline constexpr int64_t kLineBytes = 128;
// Bytes of k that one wgmma instruction takes (PTX ISA 9.7.15.1: k16 of 16 bits, k32 of 8 bits).
inline constexpr int kWgmmaDepthBytes = 32;
// Rows of one wgmma instruction, and threads that run it.
inline constexpr int kWgmmaRows = 64;
inline constexpr int kWarpgroup = 128;

enum class WgmmaCluster {
  kNone,
  kAlongM,  // two CTAs with the same columns: each loads half of them for both
  kAlongN,  // two CTAs with the same rows
};

// Which tiles are split along k between CTAs, so that all CTAs end together (stream-K): none, those
// that are left over by whole waves, or these and one whole wave, so that a tile has few parts.
enum class WgmmaStreamK { kOff, kRemainder, kWave };

// What the space needs to know of a workload and a target. Sizes are the highest.
struct WgmmaProblem {
  std::shared_ptr<const Contraction> contraction;
  Target target;
  Sizes high;
  std::vector<SizeRange> ranges;  // by canonical index number
  int64_t batches = 1, m = 1, n = 1, k = 1;
  ElementType type = ElementType::kBF16;  // of both operands
  int bytes = 2;                          // of an element of them
  // The operand's rows are contiguous (MN-major); else its k is.
  bool a_transposed = false;
  bool b_transposed = false;
  // The operand's lines are no multiple of 16 bytes apart, which TMA demands: a launch before
  // copies them to the workspace, where they are.
  bool a_padded = false;
  bool b_padded = false;
  int output_bytes = 2;
  bool tma_store = false;  // the output can leave through TMA
  // What finishing one element costs beside storing it, in instructions, roughly.
  double epilogue_instructions = 0;

  int64_t rows(bool swap) const { return swap ? n : m; }
  int64_t columns(bool swap) const { return swap ? m : n; }
  bool rows_transposed(bool swap) const { return swap ? b_transposed : a_transposed; }
  bool columns_transposed(bool swap) const { return swap ? a_transposed : b_transposed; }

  int atom_elements() const { return kSwizzleBytes / bytes; }
};
// FailedPrecondition: why wgmma with TMA cannot write this contraction on this target.
absl::StatusOr<WgmmaProblem> StudyWgmma(const Workload& workload, const Target& target,
                                        std::shared_ptr<const Contraction> contraction);
void WriteWgmmaSpace(const WgmmaProblem& problem, SpaceWriter* space);

// True if L2 may be asked for an operand's rows: they lie along k, and where they are read.
inline bool MayAskAhead(const WgmmaProblem& p, bool is_a) {
  return is_a ? !p.a_transposed && !p.a_padded : !p.b_transposed && !p.b_padded;
}
// Bytes of each of `rows` rows that `bytes` come to: whole lines, at least one, no more than
// `most`.
int64_t AheadBytesOfRow(int64_t bytes, int64_t rows, int64_t most);

// True if a tensor dimension of that stride (elements of `bytes`) may stand in a tensor map, at
// every size: a positive multiple of 16 bytes (cuTensorMapEncodeTiled).
bool IsTmaStride(const Stride& stride, int bytes);

// ---- Quantities. `tile_m` x `tile_n` is the tile of one CTA (cooperative) or of one consumer
// warpgroup (ping-pong), in the instruction's rows and columns.

// Rows of one consumer warpgroup.
int64_t ConsumerRows(bool pingpong, int64_t consumers, int64_t tile_m);
// f32 per thread of a consumer.
int64_t Accumulators(int64_t consumer_rows, int64_t tile_n);
// 8-bit products: twice as many, as sums of a stage are added to others (promotion).
inline int64_t SumsPerAccumulator(int element_bytes) { return element_bytes == 1 ? 2 : 1; }
// The most that fit: what ptxas 13.0 compiles without spilling or serialising (facts measured with
// full kernels): 208 of 232-240 registers beside one or two consumers, 128 of 160 beside three.
int64_t AccumulatorLimit(int64_t consumers, int64_t producer_registers);
// setmaxnreg of a consumer: an equal share of what the producer leaves of 64K registers, in steps
// of 8 (PTX ISA 9.7.19.5); 0: one consumer, which needs none.
int64_t ConsumerRegisters(int64_t consumers, int64_t producer_registers);
// One operand's part of a stage: `rows` x `tile_k_bytes`; MN-major ones come in whole atoms of 64
// rows.
int64_t OperandStageBytes(int64_t rows, bool transposed, int64_t tile_k_bytes);
// Where the output waits for TMA: `store_columns` columns of all consumers' rows, per buffer.
int64_t StagingBytes(int64_t rows, int64_t tile_n, int64_t store_columns, int64_t buffers,
                     int output_bytes);
// Where the output waits to be stored by rows: 64 rows of each consumer, `RowPitchBytes` apart.
int64_t RowStagingBytes(int64_t consumers, int64_t tile_n, int output_bytes);
// 16 beyond a multiple of 128: eight rows of fragments fall on different banks.
int64_t RowPitchBytes(int64_t tile_n, int output_bytes);
// Two mbarriers per stage.
int64_t BarrierBytes(int64_t stages);

// Tiles of CTAs at the highest sizes; a pair counts two even where one of them has nothing to do.
int64_t TilesOfCtas(const WgmmaProblem& problem, bool swap, int64_t tile_m, int64_t tile_n,
                    int64_t cluster);
// Tiles, the first ones, that `walkers` CTAs (or pairs of them) split along k: each walker has an
// equal share of their k blocks. None where whole waves leave nothing over, or where a share would
// be shorter than kLeastShare blocks.
inline constexpr int64_t kLeastShare = 4;
int64_t SplitTiles(WgmmaStreamK stream_k, int64_t tiles, int64_t k_blocks, int64_t walkers);

// Groups of stores that may still read shared memory when group `group` of a tile is about to write
// its buffer: those committed since that buffer's last use. Tiles have `groups` groups and use
// `buffers` buffers in turn, from the first one again in each tile; where `groups` is no multiple
// of `buffers` the first groups may therefore let fewer in flight than the later ones.
int StoresInFlight(int group, int groups, int buffers);

// Cycles of one tile on an SM's tensor cores: rows x columns x k multiply-adds.
double MmaCycles(const WgmmaProblem& problem, double rows, double columns);
// Cycles in which shared memory feeds them: per k step of 32 bytes a block of 64 rows costs 16 +
// n/4 (128 B a cycle: 64 x 32 B of a, n x 32 B of b).
double SharedReadCycles(const WgmmaProblem& problem, double rows, double columns);

}  // namespace tilewright

#endif  // TILEWRIGHT_SCHEDULE_CONTRACTION_WGMMA_SPACE_H_
