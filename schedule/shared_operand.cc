#include "schedule/shared_operand.h"

#include <algorithm>
#include <numeric>

#include "schedule/contraction_tiled_space.h"

namespace tilewright {
namespace {

// The largest power of two up to 16 that divides every term of a stride, in bytes.
int AlignmentOf(const Stride& stride, int bytes) {
  int64_t common = 16;
  for (const Stride::Term& term : stride.terms) common = std::gcd(common, term.coefficient * bytes);
  return static_cast<int>(common);
}

}  // namespace

OperandSource StudySource(const Workload& workload, const ContractionOperand& operand,
                          bool rounded_later) {
  OperandSource source;
  if (!operand.linear) return source;
  const Expr& read = *operand.read;
  source.stored = workload.layout(read.tensor).type;
  source.along_depth = operand.depth_stride.Is(1);
  const bool contiguous = source.along_depth || operand.row_stride.Is(1);
  const Expr* value = operand.value.get();
  if (rounded_later && value->kind == Expr::Kind::kCall && value->function == Function::kTf32)
    value = value->operands[0].get();
  if (value != operand.read || !contiguous) return source;
  source.plain = true;
  const int bytes = Info(source.stored).bytes;
  int64_t common = 16;
  // Along everything but the contiguous axis, where copies begin at multiples of their own size.
  const Stride& other = source.along_depth ? operand.row_stride : operand.depth_stride;
  common = std::gcd(common, int64_t{AlignmentOf(other, bytes)});
  for (size_t d = 0; d < read.subscripts.size(); ++d) {
    const Stride stride = DimensionStride(workload, read.tensor, static_cast<int>(d));
    const AffineIndex& subscript = read.subscripts[d];
    if (subscript.constant != 0) {
      Stride moved = stride;
      for (Stride::Term& term : moved.terms) term.coefficient *= subscript.constant;
      common = std::gcd(common, int64_t{AlignmentOf(moved, bytes)});
    }
    std::vector<int> indices;
    subscript.CollectIndices(&indices);
    for (int index : indices) {
      const auto along = StrideAlong(workload, read.tensor, read.subscripts, index);
      if (!along.has_value()) return OperandSource{.stored = source.stored};
      if (along->Is(1)) continue;
      common = std::gcd(common, int64_t{AlignmentOf(*along, bytes)});
    }
  }
  source.aligned_bytes = static_cast<int>(common);
  return source;
}

SharedOperand PlaceOperand(const OperandSource& source, const ContractionOperand& operand,
                           int64_t tile, int64_t tile_k, bool asynchronous, ElementType type,
                           bool deep) {
  SharedOperand place;
  place.tile = tile;
  const int64_t contiguous = (source.along_depth ? tile_k : tile) * Info(source.stored).bytes;
  const int chunk = static_cast<int>(std::min<int64_t>(source.aligned_bytes, contiguous));
  place.copied = source.plain && asynchronous && chunk >= 4;
  if (place.copied) {
    place.chunk_bytes = chunk;
    place.depth_contiguous = source.along_depth;
    place.type = source.stored;
  } else {
    place.threads_along_depth = operand.linear && operand.depth_stride.Is(1);
    place.depth_contiguous = deep;
    place.type = type;
  }
  const int64_t bytes = Info(place.type).bytes;
  // Lines that are read together lie in different banks: 16 bytes more than a line needs.
  const int64_t lines = place.depth_contiguous ? tile : tile_k;
  const int64_t line = RoundUp((place.depth_contiguous ? tile_k : tile) * bytes, 16);
  place.pitch_bytes = line + 16;
  place.stage_bytes = RoundUp(lines * place.pitch_bytes, 128);
  return place;
}

int64_t CopyRegisters(const SharedOperand& place, const ContractionOperand& operand, int64_t tile_k,
                      int64_t threads) {
  // As ptxas 13.0 takes them, measured on sampled schedules.
  constexpr int64_t kChunk = 5;
  constexpr int64_t kShortChunk = 8;  // of lines that do not fill whole chunks either
  constexpr int64_t kLinear = 8;
  constexpr int64_t kLinearByte = 11;  // narrowed to 8 bits
  constexpr int64_t kComputed = 22;
  if (place.copied) {
    const int64_t bytes = place.tile * tile_k * Info(place.type).bytes;
    return CeilDiv(bytes / place.chunk_bytes, threads) *
           (place.chunk_bytes < 16 ? kShortChunk : kChunk);
  }
  const int64_t linear = Info(place.type).bytes == 1 ? kLinearByte : kLinear;
  return CeilDiv(place.tile * tile_k, threads) * (operand.linear ? linear : kComputed);
}

}  // namespace tilewright
