#include "codegen/wgmma_epilogue.h"

#include <algorithm>

#include "codegen/convert.h"
#include "codegen/wgmma_copies.h"

namespace tilewright {

using llvm::Value;

namespace {

Value* SharedPointer(WgmmaKernel& k, Value* address) {
  return k.b.CreateIntToPtr(address, k.b.getPtrTy(3));
}

bool IsEven(const Stride& stride) {
  for (const Stride::Term& term : stride.terms) {
    if (term.coefficient % 2 != 0) return false;
  }
  return true;
}

}  // namespace

bool StoresInPairs(const Workload& workload, const Contraction& c) {
  const ElementType type = workload.layout(c.output).type;
  if (type != ElementType::kF16 && type != ElementType::kBF16) return false;
  if (!c.output_column_stride.Is(1) || !IsEven(c.output_row_stride)) return false;
  bool even = false;  // the extent of n: the product of its sizes
  for (int index : c.n.indices) {
    const SizeRange& range = workload.sizes()[index];
    even |= range.fixed() && range.low % 2 == 0;
  }
  for (const Axis& axis : c.batch)
    even &= IsEven(*StrideAlong(workload, c.output, c.output_subscripts, axis.lead()));
  return even;
}

void DemandPairAlignment(const ContractionWgmmaPlan& plan, KernelModule* module) {
  if (!StoresInPairs(module->workload(), *plan.contraction)) return;
  int64_t& alignment =
      module->alignments().back();  // a contraction has one output, the last buffer
  alignment = std::max<int64_t>(alignment, 4);
}

WgmmaEpilogue::WgmmaEpilogue(WgmmaKernel& kernel)
    : k_(kernel),
      reads_(kernel.m, *kernel.plan.contraction, kernel.entry),
      output_type_(kernel.m.workload().layout(kernel.plan.contraction->output).type) {
  pairs_ = !k_.plan.swap && StoresInPairs(k_.m.workload(), *k_.plan.contraction);
  lane_ = k_.b.CreateAnd(k_.thread, k_.I32(31));
  warp_ = k_.b.CreateLShr(k_.in_group, 5);
  barrier_ = k_.b.CreateAdd(k_.warpgroup, k_.I32(kFirstConsumerBarrier));
}

void WgmmaEpilogue::Emit(const WgmmaTile& tile, const std::vector<Value*>& sums) {
  tile_ = &tile;
  sums_ = &sums;
  first_row_ = tile.row;
  if (!k_.plan.pingpong) {
    first_row_ =
        k_.b.CreateAdd(tile.row, k_.b.CreateMul(k_.warpgroup, k_.I32(k_.plan.consumer_rows)));
  }
  indices_ = reads_.AtBatch(k_.b.CreateZExt(tile.batch, k_.b.getInt64Ty()));
  if (k_.plan.tma_store) {
    EmitStaged();
  } else if (k_.plan.row_store) {
    EmitRows();
  } else {
    EmitDirect();
  }
}

void WgmmaEpilogue::Finish() {
  if (!k_.plan.tma_store) return;
  k_.m.If(k_.b.CreateICmpEQ(k_.in_group, k_.I32(0)), [&] { k_.ptx.BulkWaitRead(0); });
}

// ---- Values

WgmmaEpilogue::Pair WgmmaEpilogue::SumsOf(int block, int piece, int half) const {
  const size_t at = static_cast<size_t>(block * k_.plan.tile_n / 2 + 4 * piece + 2 * half);
  return {(*sums_)[at], (*sums_)[at + 1]};
}

Value* WgmmaEpilogue::Row(int block, int half) const {
  Value* in_block = k_.b.CreateAdd(k_.b.CreateShl(warp_, 4), k_.b.CreateLShr(lane_, 2));
  return RowAt(k_.b.CreateAdd(in_block, k_.I32(block * kWgmmaRows + 8 * half)));
}

Value* WgmmaEpilogue::RowAt(Value* place) const { return k_.b.CreateAdd(first_row_, place); }

Value* WgmmaEpilogue::ColumnInTile(int piece, int i) const {
  Value* in_piece = k_.b.CreateShl(k_.b.CreateAnd(lane_, k_.I32(3)), 1);
  return k_.b.CreateAdd(in_piece, k_.I32(8 * piece + i));
}

Value* WgmmaEpilogue::Column(int piece, int i) const {
  return k_.b.CreateAdd(tile_->column, ColumnInTile(piece, i));
}

// `row` and `column` on the instruction's sides. What lies outside the output is computed at its
// edge, so that nothing outside a tensor is read, and dropped later.
Value* WgmmaEpilogue::Evaluate(Value* sum, Value* row, Value* column, int lanes) {
  const Contraction& c = *k_.plan.contraction;
  auto inside = [&](Value* position, Value* extent, int step) {
    Value* last = k_.b.CreateSub(extent, k_.I32(step));
    Value* clamped = k_.b.CreateSelect(k_.b.CreateICmpULT(position, last), position, last);
    return k_.b.CreateZExt(clamped, k_.b.getInt64Ty());
  };
  std::vector<Value*> indices = indices_;
  const Axis& row_axis = k_.plan.swap ? c.n : c.m;
  const Axis& column_axis = k_.plan.swap ? c.m : c.n;
  if (!row_axis.indices.empty()) indices[row_axis.lead()] = inside(row, k_.rows, 1);
  if (!column_axis.indices.empty()) indices[column_axis.lead()] = inside(column, k_.columns, lanes);
  return reads_.Epilogue(sum, indices, lanes);
}

WgmmaEpilogue::Pair WgmmaEpilogue::Finished(int block, int piece, int half) {
  const Pair sums = SumsOf(block, piece, half);
  if (k_.plan.contraction->plain_epilogue) return sums;
  Value* row = Row(block, half);
  Value* column = Column(piece, 0);
  // Where rows of n have an even length neighbours are inside together.
  if (pairs_) {
    Value* pair = llvm::PoisonValue::get(llvm::FixedVectorType::get(k_.b.getFloatTy(), 2));
    pair = k_.b.CreateInsertElement(pair, sums.first, uint64_t{0});
    pair = k_.b.CreateInsertElement(pair, sums.second, uint64_t{1});
    Value* value = Evaluate(pair, row, column, 2);
    return {k_.b.CreateExtractElement(value, uint64_t{0}),
            k_.b.CreateExtractElement(value, uint64_t{1})};
  }
  return {Evaluate(sums.first, row, column, 1), Evaluate(sums.second, row, Column(piece, 1), 1)};
}

// ---- Staged

void WgmmaEpilogue::EmitStaged() {
  const ContractionWgmmaPlan& plan = k_.plan;
  const int groups = static_cast<int>((plan.tile_n + plan.store_columns - 1) / plan.store_columns);
  Value* own =
      k_.b.CreateAdd(k_.b.CreateAdd(k_.shared, k_.I32(plan.staging_offset)),
                     k_.b.CreateMul(k_.warpgroup, k_.I32(plan.store_buffers * plan.staging_bytes)));
  Value* copier = k_.b.CreateICmpEQ(k_.in_group, k_.I32(0));
  for (int group = 0; group < groups; ++group) {
    const int first = group * plan.store_columns;
    const int end = std::min(plan.tile_n, first + plan.store_columns);
    Value* buffer = k_.b.CreateAdd(own, k_.I32(group % plan.store_buffers * plan.staging_bytes));
    // The copy that last read this buffer must have done so.
    const int in_flight = StoresInFlight(group, groups, plan.store_buffers);
    k_.m.If(copier, [&] { k_.ptx.BulkWaitRead(in_flight); });
    k_.ptx.Barrier(barrier_, kWarpgroup);
    StageGroup(first, end, buffer);
    k_.ptx.FenceAsyncShared();
    k_.ptx.Barrier(barrier_, kWarpgroup);
    k_.m.If(copier, [&] {
      CopyOut(first, end, buffer);
      k_.ptx.BulkCommit();
    });
  }
}

void WgmmaEpilogue::StageGroup(int first_column, int end_column, Value* buffer) {
  const int unit = k_.plan.store_unit();
  for (int column = first_column; column < end_column; column += unit) {
    const int end = std::min(end_column, column + unit);
    const int64_t offset =
        int64_t{column - first_column} * k_.plan.consumer_rows * k_.plan.output_bytes;
    StageUnit(column / 8, end / 8, k_.b.CreateAdd(buffer, k_.I32(offset)));
  }
}

void WgmmaEpilogue::StageUnit(int first_piece, int end_piece, Value* unit) {
  const int pieces = end_piece - first_piece;
  for (int block = 0; block < k_.plan.consumer_rows / kWgmmaRows; ++block) {
    for (int piece = first_piece; piece < end_piece; piece += 2) {
      std::vector<Value*> registers;
      for (int at = piece; at < std::min(piece + 2, end_piece); ++at) {
        for (int half = 0; half < 2; ++half) {
          const Pair value = Finished(block, at, half);
          registers.push_back(k_.ptx.PackPair(output_type_, value.first, value.second));
        }
      }
      k_.ptx.StoreMatrix(FragmentAddress(block, piece - first_piece, pieces, unit), registers,
                         k_.plan.swap);
    }
  }
}

// Where this lane's row of the four 8 x 8 matrices lies, which are, by lane / 8: rows 0-7 and 8-15
// of piece `piece`, then of the next piece. TMA's swizzle exchanges the 16-byte chunks of a line of
// 128 bytes by the line's number in 1024 bytes (CUDA C++ Programming Guide, "TMA Swizzle").
Value* WgmmaEpilogue::FragmentAddress(int block, int piece, int pieces, Value* unit) const {
  llvm::IRBuilder<>& b = k_.b;
  Value* line = b.CreateAnd(lane_, k_.I32(7));
  Value* second_half = b.CreateAnd(b.CreateLShr(lane_, 3), k_.I32(1));
  Value* next_piece = b.CreateLShr(lane_, 4);
  if (k_.plan.swap) {
    // Transposed: lines are the instruction's columns, 64 of its rows side by side; a block has
    // lines of its own.
    Value* chunk = b.CreateAdd(b.CreateShl(warp_, 1), second_half);
    Value* place = b.CreateShl(b.CreateXor(chunk, line), 4);
    Value* lines = b.CreateAdd(line, b.CreateShl(next_piece, 3));
    Value* address = b.CreateAdd(b.CreateAdd(unit, b.CreateShl(lines, 7)), place);
    return b.CreateAdd(address, k_.I32((int64_t{block} * pieces + piece) * 8 * kSwizzleBytes));
  }
  const int pitch = pieces * 8 * k_.plan.output_bytes;
  Value* row = b.CreateAdd(b.CreateAdd(b.CreateShl(warp_, 4), b.CreateShl(second_half, 3)), line);
  Value* start = b.CreateAdd(unit, b.CreateMul(row, k_.I32(pitch)));
  Value* chunk = b.CreateAdd(next_piece, k_.I32(piece));
  const int lines_per_row_shift = pitch == 128 ? 0 : pitch == 64 ? 1 : pitch == 32 ? 2 : -1;
  if (lines_per_row_shift >= 0) chunk = b.CreateXor(chunk, b.CreateLShr(line, lines_per_row_shift));
  return b.CreateAdd(b.CreateAdd(start, b.CreateShl(chunk, 4)),
                     k_.I32(int64_t{block} * kWgmmaRows * pitch));
}

void WgmmaEpilogue::CopyOut(int first_column, int end_column, Value* buffer) {
  const ContractionWgmmaPlan& plan = k_.plan;
  const int unit = plan.store_unit();
  for (int column = first_column; column < end_column; column += unit) {
    const int width = std::min(end_column - column, unit);
    Value* map = k_.entry.tensor_maps[width == unit ? kOutputMap : kOutputTailMap];
    Value* from = k_.b.CreateAdd(
        buffer, k_.I32(int64_t{column - first_column} * plan.consumer_rows * plan.output_bytes));
    Value* at = k_.b.CreateAdd(tile_->column, k_.I32(column));
    const int copies = plan.swap ? plan.consumer_rows / kWgmmaRows : 1;
    for (int copy = 0; copy < copies; ++copy) {
      Value* row = k_.b.CreateAdd(first_row_, k_.I32(copy * kWgmmaRows));
      std::vector<Value*> coordinates = {at, row};
      if (plan.swap) std::swap(coordinates[0], coordinates[1]);
      coordinates.insert(coordinates.end(), tile_->batch_positions.begin(),
                         tile_->batch_positions.end());
      k_.ptx.TmaStore(map, k_.b.CreateAdd(from, k_.I32(int64_t{copy} * width * kSwizzleBytes)),
                      coordinates);
    }
  }
}

// ---- By rows

// A block's 16 rows of a warp at a time.
void WgmmaEpilogue::EmitRows() {
  const ContractionWgmmaPlan& plan = k_.plan;
  llvm::IRBuilder<>& b = k_.b;
  const int64_t pitch = RowPitchBytes(plan.tile_n, plan.output_bytes);
  Value* own = b.CreateAdd(b.CreateMul(k_.warpgroup, k_.I32(plan.staging_bytes)),
                           b.CreateMul(warp_, k_.I32(16 * pitch)));
  Value* slab = b.CreateAdd(b.CreateAdd(k_.shared, k_.I32(plan.staging_offset)), own);
  Value* line = b.CreateAdd(slab, b.CreateMul(b.CreateLShr(lane_, 2), k_.I32(pitch)));
  for (int block = 0; block < plan.consumer_rows / kWgmmaRows; ++block) {
    for (int piece = 0; piece < plan.tile_n / 8; ++piece) {
      for (int half = 0; half < 2; ++half) {
        const Pair value = Finished(block, piece, half);
        for (int i = 0; i < 2; ++i) {
          Value* stored = NarrowElements(k_.m, output_type_, i == 0 ? value.first : value.second);
          Value* at =
              b.CreateAdd(line, b.CreateMul(ColumnInTile(piece, i), k_.I32(plan.output_bytes)));
          at = b.CreateAdd(at, k_.I32(8 * half * pitch));
          b.CreateAlignedStore(stored, SharedPointer(k_, at), llvm::Align(plan.output_bytes));
        }
      }
    }
    k_.ptx.WarpBarrier();
    StoreRows(block, slab);
    k_.ptx.WarpBarrier();
  }
}

// Lanes side by side along a row.
void WgmmaEpilogue::StoreRows(int block, Value* slab) {
  const ContractionWgmmaPlan& plan = k_.plan;
  const Contraction& c = *plan.contraction;
  llvm::IRBuilder<>& b = k_.b;
  llvm::Type* i64 = b.getInt64Ty();
  llvm::Type* bits = StorageBits(k_.m, output_type_, 1);
  const int64_t pitch = RowPitchBytes(plan.tile_n, plan.output_bytes);
  Value* base = reads_.Offset(c.output, c.output_subscripts, indices_);
  Value* row_stride = reads_.Of(c.output_row_stride);
  Value* column_stride = reads_.Of(c.output_column_stride);
  Value* output = reads_.Buffer(c.output);
  DeviceVariable line(k_.m, "line");
  line.Set(k_.I32(0));
  While(
      k_.m, "line", [&] { return b.CreateICmpULT(line.Get(), k_.I32(16)); },
      [&] {
        Value* now = line.Get();
        Value* place = b.CreateAdd(b.CreateShl(warp_, 4), now);
        Value* row = RowAt(b.CreateAdd(place, k_.I32(block * kWgmmaRows)));
        Value* row_exists = b.CreateICmpULT(row, k_.rows);
        Value* row_offset =
            b.CreateNSWAdd(base, b.CreateNSWMul(b.CreateZExt(row, i64), row_stride));
        Value* from = b.CreateAdd(slab, b.CreateMul(now, k_.I32(pitch)));
        for (int first = 0; first < plan.tile_n; first += 32) {
          Value* in_tile = b.CreateAdd(lane_, k_.I32(first));
          Value* column = b.CreateAdd(tile_->column, in_tile);
          Value* exists = b.CreateAnd(row_exists, b.CreateICmpULT(column, k_.columns));
          if (first + 32 > plan.tile_n)
            exists = b.CreateAnd(exists, b.CreateICmpULT(in_tile, k_.I32(plan.tile_n)));
          k_.m.If(exists, [&] {
            Value* at = b.CreateAdd(from, b.CreateMul(in_tile, k_.I32(plan.output_bytes)));
            const llvm::Align align(plan.output_bytes);
            Value* stored = b.CreateAlignedLoad(bits, SharedPointer(k_, at), align);
            Value* offset = b.CreateNSWAdd(
                row_offset, b.CreateNSWMul(b.CreateZExt(column, i64), column_stride));
            b.CreateAlignedStore(stored, b.CreateGEP(bits, output, offset), align);
          });
        }
        line.Set(b.CreateAdd(now, k_.I32(1)));
      });
}

// ---- Direct

void WgmmaEpilogue::EmitDirect() {
  const Contraction& c = *k_.plan.contraction;
  llvm::IRBuilder<>& b = k_.b;
  llvm::Type* i64 = b.getInt64Ty();
  Value* base = reads_.Offset(c.output, c.output_subscripts, indices_);
  Value* row_stride = reads_.Of(k_.plan.swap ? c.output_column_stride : c.output_row_stride);
  Value* column_stride = reads_.Of(k_.plan.swap ? c.output_row_stride : c.output_column_stride);
  Value* output = reads_.Buffer(c.output);
  for (int block = 0; block < k_.plan.consumer_rows / kWgmmaRows; ++block) {
    for (int half = 0; half < 2; ++half) {
      Value* row = Row(block, half);
      Value* row_exists = b.CreateICmpULT(row, k_.rows);
      Value* row_offset = b.CreateNSWAdd(base, b.CreateNSWMul(b.CreateZExt(row, i64), row_stride));
      for (int piece = 0; piece < k_.plan.tile_n / 8; ++piece) {
        const Pair value = Finished(block, piece, half);
        if (pairs_) {
          Value* exists = b.CreateAnd(row_exists, b.CreateICmpULT(Column(piece, 0), k_.columns));
          Value* offset = b.CreateNSWAdd(row_offset, b.CreateZExt(Column(piece, 0), i64));
          Value* packed = k_.ptx.PackPair(output_type_, value.first, value.second);
          k_.m.If(exists, [&] {
            b.CreateAlignedStore(packed, b.CreateGEP(b.getInt16Ty(), output, offset),
                                 llvm::Align(4));
          });
          continue;
        }
        for (int i = 0; i < 2; ++i) {
          Value* column = Column(piece, i);
          Value* exists = b.CreateAnd(row_exists, b.CreateICmpULT(column, k_.columns));
          Value* offset =
              b.CreateNSWAdd(row_offset, b.CreateNSWMul(b.CreateZExt(column, i64), column_stride));
          k_.m.StoreElements(output_type_, i == 0 ? value.first : value.second, output, offset, 1,
                             exists);
        }
      }
    }
  }
}

}  // namespace tilewright
