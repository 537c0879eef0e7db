// A kernel has up to two launches:
//   pack      (only with shared packing) every thread packs its share of the strips of a and b
//   multiply  every thread runs over its rectangle of the output:
//               for its batches
//                 for blocks of n, k, m in the plan's order      OrderedBlocks
//                   pack what is private as soon as its block is known
//                   for strips of n and m                        Block
//                     one micro-tile                             Tile
// The micro-kernel writes its tile straight to the output, or to where partial sums wait, or, for
// tiles at an edge and for the last block of k when there is an epilogue, to a small tile on the
// stack which Finish carries on from.
#include "codegen/contraction_tiled.h"

#include <utility>
#include <vector>

#include "codegen/contraction_micro.h"
#include "codegen/contraction_reads.h"
#include "codegen/contraction_strips.h"
#include "codegen/kernel_module.h"
#include "schedule/contraction_tiled.h"

namespace tilewright {
namespace {

using llvm::Value;

// Half-open, in strips (m, n) or steps (k).
struct Range {
  Value* begin = nullptr;
  Value* end = nullptr;
};

class TiledWriter {
 public:
  TiledWriter(const ContractionTiledPlan& plan, KernelModule& module)
      : plan_(plan), c_(*plan.contraction), m_(module), b_(module.builder()) {
    element_ = m_.Type(c_.accumulator);
  }

  void Write() {
    m_.workspace().bytes = plan_.workspace_bytes;
    micro_ = MicroKernel::Emit(m_, plan_);
    if (plan_.pack_a == Packing::kShared || plan_.pack_b == Packing::kShared) {
      Begin();
      if (plan_.pack_a == Packing::kShared)
        PackShared(c_.a, c_.m, plan_.micro_m, plan_.shared_a_offset);
      if (plan_.pack_b == Packing::kShared)
        PackShared(c_.b, c_.n, plan_.micro_n(), plan_.shared_b_offset);
      m_.EndEntry();
    }
    Begin();
    Multiply();
    m_.EndEntry();
  }

 private:
  // ---- Set-up
  // --------------------------------------------------------------------------------------------------

  void Begin() {
    entry_ = m_.BeginEntry(plan_.threads);
    reads_ = std::make_unique<ContractionReads>(m_, c_, entry_);
    rows_ = reads_->Extent(c_.m);
    columns_ = reads_->Extent(c_.n);
    strips_m_ = m_.CeilDiv(rows_, plan_.micro_m);
    strips_n_ = m_.CeilDiv(columns_, plan_.micro_n());
    // Blocks of k are of even length, in whole multiples of 8 steps so that unrolled loops have no
    // tail.
    if (plan_.one_k_block) {
      k_blocks_ = m_.Int(1);
      k_block_ = reads_->K();
    } else {
      k_blocks_ = m_.CeilDiv(reads_->K(), plan_.tile_k);
      k_block_ = b_.CreateAnd(b_.CreateNSWAdd(Ceil(reads_->K(), k_blocks_), m_.Int(7)), m_.Int(-8));
    }
    output_ = reads_->Buffer(c_.output);
    output_row_ = reads_->Of(c_.output_row_stride);
    output_column_ = reads_->Of(c_.output_column_stride);
  }

  Value* Ceil(Value* a, Value* divisor) {
    return b_.CreateUDiv(b_.CreateNSWAdd(a, b_.CreateNSWSub(divisor, m_.Int(1))), divisor);
  }
  Value* At(Value* base, Value* elements) { return b_.CreateGEP(element_, base, elements); }
  Value* Bytes(Value* base, Value* bytes) { return b_.CreateGEP(b_.getInt8Ty(), base, bytes); }

  // Part `number` of `parts` even parts of [0, count).
  Range Share(Value* count, Value* number, int parts) {
    if (parts == 1) return {m_.Int(0), count};
    Value* next = b_.CreateNSWAdd(number, m_.Int(1));
    return {b_.CreateUDiv(b_.CreateNSWMul(count, number), m_.Int(parts)),
            b_.CreateUDiv(b_.CreateNSWMul(count, next), m_.Int(parts))};
  }

  StripSource Source(const ContractionOperand& operand, const Axis& axis, int strip_rows,
                     std::vector<Value*> indices, const Range& k) {
    StripSource source;
    source.operand = &operand;
    source.axis = &axis;
    source.indices = std::move(indices);
    source.extent = reads_->Extent(axis);
    source.first_step = k.begin;
    source.steps = b_.CreateNSWSub(k.end, k.begin);
    source.strip_rows = strip_rows;
    source.accumulator = c_.accumulator;
    source.lanes = plan_.lanes;
    return source;
  }

  // ---- The launch that packs for all threads
  // -------------------------------------------------------------------

  void PackShared(const ContractionOperand& operand, const Axis& axis, int64_t strip_rows,
                  int64_t offset) {
    Value* strips = m_.CeilDiv(reads_->Extent(axis), strip_rows);
    Value* per_batch = b_.CreateNSWMul(k_blocks_, strips);
    Value* items = b_.CreateNSWMul(reads_->BatchCount(operand), per_batch);
    const Range own = Share(items, entry_.thread, plan_.threads);
    m_.For(own.begin, own.end, 1, "pack", [&](Value* item) {
      Value* batch = b_.CreateUDiv(item, per_batch);
      Value* rest = b_.CreateURem(item, per_batch);
      Value* strip = b_.CreateURem(rest, strips);
      Value* first = b_.CreateNSWMul(b_.CreateUDiv(rest, strips), k_block_);
      const Range k = {first, m_.Min(b_.CreateNSWAdd(first, k_block_), reads_->K())};
      const StripSource source =
          Source(operand, axis, static_cast<int>(strip_rows), reads_->AtBatch(operand, batch), k);
      Value* to = SharedStrip(offset, batch, strips, strip_rows, k, strip);
      EmitPackStrips(m_, *reads_, source, strip, b_.CreateNSWAdd(strip, m_.Int(1)), to);
    });
  }

  // [batch][block of k][strip][k][row], without gaps.
  Value* SharedStrip(int64_t offset, Value* batch, Value* strips, int64_t strip_rows,
                     const Range& k, Value* strip) {
    Value* padded = b_.CreateNSWMul(strips, m_.Int(strip_rows));
    Value* at = b_.CreateNSWMul(b_.CreateNSWMul(batch, reads_->K()), padded);
    at = b_.CreateNSWAdd(at, b_.CreateNSWMul(k.begin, padded));
    Value* strip_elements = b_.CreateNSWMul(b_.CreateNSWSub(k.end, k.begin), m_.Int(strip_rows));
    at = b_.CreateNSWAdd(at, b_.CreateNSWMul(strip, strip_elements));
    return At(Bytes(entry_.workspace, m_.Int(offset)), at);
  }

  // ---- The launch that multiplies
  // ------------------------------------------------------------------------------

  void Multiply() {
    tile_ = m_.Local(element_, "tile", plan_.micro_m * plan_.micro_n());
    own_area_ = Bytes(entry_.workspace,
                      b_.CreateNSWAdd(m_.Int(plan_.threads_offset),
                                      b_.CreateNSWMul(entry_.thread, m_.Int(plan_.thread_bytes))));
    Value* thread = entry_.thread;
    Value* number_n = b_.CreateURem(thread, m_.Int(plan_.threads_n));
    thread = b_.CreateUDiv(thread, m_.Int(plan_.threads_n));
    Value* number_m = b_.CreateURem(thread, m_.Int(plan_.threads_m));
    Value* number_batch = b_.CreateUDiv(thread, m_.Int(plan_.threads_m));
    own_m_ = Share(strips_m_, number_m, plan_.threads_m);
    own_n_ = Share(strips_n_, number_n, plan_.threads_n);
    const Range batches = Share(reads_->BatchCount(), number_batch, plan_.threads_batch);
    m_.For(batches.begin, batches.end, 1, "batch", [&](Value* batch) {
      indices_ = reads_->AtBatch(batch);
      output_base_ = reads_->Offset(c_.output, c_.output_subscripts, indices_);
      if (plan_.pack_a == Packing::kNone)
        a_base_ = reads_->Offset(c_.a.read->tensor, c_.a.read->subscripts, indices_);
      if (plan_.pack_b == Packing::kNone)
        b_base_ = reads_->Offset(c_.b.read->tensor, c_.b.read->subscripts, indices_);
      if (plan_.pack_a == Packing::kShared) a_batch_ = reads_->OwnBatch(c_.a, indices_);
      if (plan_.pack_b == Packing::kShared) b_batch_ = reads_->OwnBatch(c_.b, indices_);
      OrderedBlocks();
    });
  }

  // Blocks of even length, at most `tile` strips.
  void ForBlocks(const Range& own, int64_t tile, const char* name, Range* block,
                 const std::function<void()>& body) {
    Value* length = b_.CreateNSWSub(own.end, own.begin);
    Value* count = m_.CeilDiv(length, tile);
    Value* each = Ceil(length, m_.Max(count, m_.Int(1)));
    m_.For(m_.Int(0), count, 1, name, [&](Value* number) {
      block->begin = b_.CreateNSWAdd(own.begin, b_.CreateNSWMul(number, each));
      block->end = m_.Min(b_.CreateNSWAdd(block->begin, each), own.end);
      body();
    });
  }
  void ForM(const std::function<void()>& body) {
    ForBlocks(own_m_, plan_.tile_m / plan_.micro_m, "block.m", &block_m_, body);
  }
  void ForN(const std::function<void()>& body) {
    ForBlocks(own_n_, plan_.tile_n / plan_.micro_n(), "block.n", &block_n_, body);
  }
  void ForK(const std::function<void()>& body) {
    m_.For(m_.Int(0), k_blocks_, 1, "block.k", [&](Value* number) {
      Value* first = b_.CreateNSWMul(number, k_block_);
      block_k_ = {first, m_.Min(b_.CreateNSWAdd(first, k_block_), reads_->K())};
      steps_ = b_.CreateNSWSub(block_k_.end, block_k_.begin);
      first_k_ = b_.CreateICmpEQ(number, m_.Int(0));
      last_k_ = b_.CreateICmpEQ(number, b_.CreateNSWSub(k_blocks_, m_.Int(1)));
      body();
    });
  }

  void OrderedBlocks() {
    switch (plan_.order) {
      case BlockOrder::kNKM:
        return ForN([&] {
          ForK([&] {
            PackB();
            ForM([&] {
              PackA();
              Block();
            });
          });
        });
      case BlockOrder::kMKN:
        return ForM([&] {
          ForK([&] {
            PackA();
            ForN([&] {
              PackB();
              Block();
            });
          });
        });
      case BlockOrder::kNMK:
        return ForN([&] {
          ForM([&] {
            ForK([&] {
              PackA();
              PackB();
              Block();
            });
          });
        });
    }
  }

  void PackA() {
    if (plan_.pack_a != Packing::kPrivate) return;
    EmitPackStrips(m_, *reads_, Source(c_.a, c_.m, plan_.micro_m, indices_, block_k_),
                   block_m_.begin, block_m_.end, Bytes(own_area_, m_.Int(plan_.private_a_offset)));
  }

  void PackB() {
    if (plan_.pack_b == Packing::kShared) return;
    const StripSource source =
        Source(c_.b, c_.n, static_cast<int>(plan_.micro_n()), indices_, block_k_);
    Value* to = Bytes(own_area_, m_.Int(plan_.private_b_offset));
    if (plan_.pack_b == Packing::kPrivate) {
      return EmitPackStrips(m_, *reads_, source, block_n_.begin, block_n_.end, to);
    }
    // Used in place, but vectors must not be read past the last column: a partial strip is packed.
    Value* partial =
        b_.CreateICmpSGT(b_.CreateNSWMul(block_n_.end, m_.Int(plan_.micro_n())), columns_);
    m_.If(partial, [&] {
      EmitPackStrips(m_, *reads_, source, b_.CreateNSWSub(block_n_.end, m_.Int(1)), block_n_.end,
                     to);
    });
  }

  void Block() {
    auto strips = [&](const Range& range, const char* name,
                      const std::function<void(Value*)>& body) {
      m_.For(range.begin, range.end, 1, name, body);
    };
    if (plan_.inner_m) {
      strips(block_n_, "strip.n",
             [&](Value* n) { strips(block_m_, "strip.m", [&](Value* m) { Tile(m, n); }); });
    } else {
      strips(block_m_, "strip.m",
             [&](Value* m) { strips(block_n_, "strip.n", [&](Value* n) { Tile(m, n); }); });
    }
  }

  // ---- One micro-tile
  // ------------------------------------------------------------------------------------------

  void Tile(Value* strip_m, Value* strip_n) {
    row_ = b_.CreateNSWMul(strip_m, m_.Int(plan_.micro_m));
    column_ = b_.CreateNSWMul(strip_n, m_.Int(plan_.micro_n()));
    tile_rows_ = m_.Min(m_.Int(plan_.micro_m), b_.CreateNSWSub(rows_, row_));
    tile_columns_ = m_.Min(m_.Int(plan_.micro_n()), b_.CreateNSWSub(columns_, column_));
    full_ = b_.CreateAnd(b_.CreateICmpEQ(tile_rows_, m_.Int(plan_.micro_m)),
                         b_.CreateICmpEQ(tile_columns_, m_.Int(plan_.micro_n())));
    MicroCall call;
    PointToA(strip_m, &call);
    PointToB(strip_n, &call);
    call.steps = steps_;
    if (plan_.sums_in_output) {
      TileInOutput(&call);
    } else {
      TileInWorkspace(strip_m, strip_n, &call);
    }
  }

  void PointToA(Value* strip, MicroCall* call) {
    call->rows = tile_rows_;
    call->a_row = m_.Int(1);
    call->a_depth = m_.Int(plan_.micro_m);
    if (plan_.pack_a == Packing::kPrivate) {
      Value* elements = b_.CreateNSWMul(steps_, m_.Int(plan_.micro_m));
      Value* at = b_.CreateNSWMul(b_.CreateNSWSub(strip, block_m_.begin), elements);
      call->a = At(Bytes(own_area_, m_.Int(plan_.private_a_offset)), at);
    } else if (plan_.pack_a == Packing::kShared) {
      call->a =
          SharedStrip(plan_.shared_a_offset, a_batch_, strips_m_, plan_.micro_m, block_k_, strip);
    } else {
      call->a_row = reads_->Of(c_.a.row_stride);
      call->a_depth = reads_->Of(c_.a.depth_stride);
      Value* at = b_.CreateNSWAdd(a_base_, b_.CreateNSWMul(row_, call->a_row));
      call->a = At(reads_->Buffer(c_.a.read->tensor),
                   b_.CreateNSWAdd(at, b_.CreateNSWMul(block_k_.begin, call->a_depth)));
    }
  }

  void PointToB(Value* strip, MicroCall* call) {
    Value* micro_n = m_.Int(plan_.micro_n());
    call->b_depth = micro_n;
    Value* own = Bytes(own_area_, m_.Int(plan_.private_b_offset));
    if (plan_.pack_b == Packing::kPrivate) {
      call->b = At(own, b_.CreateNSWMul(b_.CreateNSWSub(strip, block_n_.begin),
                                        b_.CreateNSWMul(steps_, micro_n)));
    } else if (plan_.pack_b == Packing::kShared) {
      call->b =
          SharedStrip(plan_.shared_b_offset, b_batch_, strips_n_, plan_.micro_n(), block_k_, strip);
    } else {
      Value* whole = b_.CreateICmpEQ(tile_columns_, micro_n);
      Value* depth = reads_->Of(c_.b.depth_stride);
      Value* at = b_.CreateNSWAdd(b_.CreateNSWAdd(b_base_, column_),
                                  b_.CreateNSWMul(block_k_.begin, depth));
      call->b = b_.CreateSelect(whole, At(reads_->Buffer(c_.b.read->tensor), at), own);
      call->b_depth = b_.CreateSelect(whole, depth, micro_n);
    }
  }

  void CallMicro(const MicroCall& call) {
    if (!micro_.has_edge()) return micro_.Call(m_, call, MicroKernel::Kind::kFull);
    m_.If(
        b_.CreateICmpEQ(tile_rows_, m_.Int(plan_.micro_m)),
        [&] { micro_.Call(m_, call, MicroKernel::Kind::kFull); },
        [&] { micro_.Call(m_, call, MicroKernel::Kind::kEdge); });
  }

  Value* TileOffset(Value* row, Value* column) {
    return b_.CreateNSWAdd(b_.CreateNSWMul(row, m_.Int(plan_.micro_n())), column);
  }
  Value* OutputOffset(Value* row, Value* column) {
    Value* at =
        b_.CreateNSWAdd(output_base_, b_.CreateNSWMul(b_.CreateNSWAdd(row_, row), output_row_));
    return b_.CreateNSWAdd(at, b_.CreateNSWMul(b_.CreateNSWAdd(column_, column), output_column_));
  }

  // Partial sums wait in the output. Whole tiles start from there and, unless the epilogue is due,
  // go straight back.
  void TileInOutput(MicroCall* call) {
    Value* direct = c_.plain_epilogue ? full_ : b_.CreateAnd(full_, b_.CreateNot(last_k_));
    call->sums = At(output_, OutputOffset(m_.Int(0), m_.Int(0)));
    call->sums_row = output_row_;
    call->start = b_.CreateAnd(full_, b_.CreateNot(first_k_));
    call->result = b_.CreateSelect(direct, call->sums, tile_);
    call->result_row = b_.CreateSelect(direct, output_row_, m_.Int(plan_.micro_n()));
    CallMicro(*call);
    m_.If(b_.CreateNot(direct), [&] {
      m_.If(b_.CreateNot(b_.CreateOr(full_, first_k_)), [&] { AddWaitingSums(); });
      Finish();
    });
  }

  void AddWaitingSums() {
    ForTileElements([&](Value* row, Value* column, int lanes) {
      Value* waiting = m_.LoadElements(c_.accumulator, output_, OutputOffset(row, column), lanes,
                                       c_.accumulator);
      Value* sum =
          m_.LoadElements(c_.accumulator, tile_, TileOffset(row, column), lanes, c_.accumulator);
      sum =
          Info(c_.accumulator).is_float ? b_.CreateFAdd(sum, waiting) : b_.CreateAdd(sum, waiting);
      m_.StoreElements(c_.accumulator, sum, tile_, TileOffset(row, column), lanes);
    });
  }

  // Partial sums wait in c_block, which has room for whole tiles everywhere.
  void TileInWorkspace(Value* strip_m, Value* strip_n, MicroCall* call) {
    call->sums = tile_;
    call->sums_row = m_.Int(plan_.micro_n());
    call->start = b_.getFalse();
    call->result = tile_;
    call->result_row = m_.Int(plan_.micro_n());
    if (plan_.one_k_block) {
      CallMicro(*call);
      return Finish();
    }
    Value* origin_m = plan_.order == BlockOrder::kNKM ? own_m_.begin : block_m_.begin;
    Value* origin_n = plan_.order == BlockOrder::kMKN ? own_n_.begin : block_n_.begin;
    Value* row = b_.CreateNSWMul(b_.CreateNSWSub(strip_m, origin_m), m_.Int(plan_.micro_m));
    Value* column = b_.CreateNSWMul(b_.CreateNSWSub(strip_n, origin_n), m_.Int(plan_.micro_n()));
    Value* at = b_.CreateNSWAdd(b_.CreateNSWMul(row, m_.Int(plan_.c_block_columns)), column);
    call->sums = At(Bytes(own_area_, m_.Int(plan_.c_block_offset)), at);
    call->sums_row = m_.Int(plan_.c_block_columns);
    call->start = b_.CreateNot(first_k_);
    call->result = b_.CreateSelect(last_k_, tile_, call->sums);
    call->result_row = b_.CreateSelect(last_k_, call->result_row, call->sums_row);
    CallMicro(*call);
    m_.If(last_k_, [&] { Finish(); });
  }

  // The tile on the stack goes to the output: through the epilogue after the last block of k, else
  // as it is.
  void Finish() {
    const ElementType type = m_.workload().layout(c_.output).type;
    if (!plan_.sums_in_output || c_.plain_epilogue)
      return FinishWith(type, !c_.plain_epilogue || type != c_.accumulator);
    m_.If(
        last_k_, [&] { FinishWith(type, true); }, [&] { FinishWith(type, false); });
  }

  void FinishWith(ElementType type, bool epilogue) {
    ForTileElements([&](Value* row, Value* column, int lanes) {
      Value* value =
          m_.LoadElements(c_.accumulator, tile_, TileOffset(row, column), lanes, c_.accumulator);
      if (epilogue) {
        std::vector<Value*> indices = indices_;
        if (!c_.m.indices.empty()) indices[c_.m.lead()] = b_.CreateNSWAdd(row_, row);
        if (!c_.n.indices.empty()) indices[c_.n.lead()] = b_.CreateNSWAdd(column_, column);
        value = reads_->Epilogue(value, indices, lanes);
      }
      StoreOutput(type, value, OutputOffset(row, column), lanes);
    });
  }

  void StoreOutput(ElementType type, Value* value, Value* offset, int lanes) {
    if (lanes == 1 || c_.output_column_stride.Is(1))
      return m_.StoreElements(type, value, output_, offset, lanes);
    for (int lane = 0; lane < lanes; ++lane) {
      Value* at = b_.CreateNSWAdd(offset, b_.CreateNSWMul(m_.Int(lane), output_column_));
      m_.StoreElements(type, b_.CreateExtractElement(value, uint64_t(lane)), output_, at, 1);
    }
  }

  // The elements of the tile that exist: vectors, then what is left of each row one by one.
  void ForTileElements(const std::function<void(Value*, Value*, int)>& body) {
    m_.For(m_.Int(0), tile_rows_, 1, "tile.row", [&](Value* row) {
      Value* whole = m_.Int(0);
      if (plan_.lanes > 1) {
        whole = b_.CreateAnd(tile_columns_, m_.Int(-plan_.lanes));
        m_.For(m_.Int(0), whole, plan_.lanes, "tile.vector",
               [&](Value* column) { body(row, column, plan_.lanes); });
      }
      m_.For(whole, tile_columns_, 1, "tile.column", [&](Value* column) { body(row, column, 1); });
    });
  }

  const ContractionTiledPlan& plan_;
  const Contraction& c_;
  KernelModule& m_;
  llvm::IRBuilder<>& b_;
  llvm::Type* element_;
  MicroKernel micro_;

  // Of the entry being written.
  KernelModule::Entry entry_;
  std::unique_ptr<ContractionReads> reads_;
  Value *rows_, *columns_, *strips_m_, *strips_n_, *k_blocks_, *k_block_;
  Value *output_, *output_row_, *output_column_;
  Value *tile_, *own_area_;
  Range own_m_, own_n_;

  // Of the loop body being written.
  std::vector<Value*> indices_;
  Value *output_base_, *a_base_, *b_base_, *a_batch_, *b_batch_;
  Range block_m_, block_n_, block_k_;
  Value *steps_, *first_k_, *last_k_;
  Value *row_, *column_, *tile_rows_, *tile_columns_, *full_;
};

}  // namespace

absl::Status WriteContractionTiled(const Candidate& candidate, const Plan& plan,
                                   KernelModule* module) {
  TiledWriter(static_cast<const ContractionTiledPlan&>(plan), *module).Write();
  return absl::OkStatus();
}

}  // namespace tilewright
