#include "codegen/shared_copies.h"

#include <algorithm>
#include <utility>

#include "codegen/convert.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace tilewright {

using llvm::Value;

namespace {

// Whether the axes' positions together are a known number that `part` divides.
bool Divides(const Workload& workload, absl::Span<const Axis> axes, int64_t part) {
  int64_t extent = 1;
  for (const Axis& axis : axes) {
    for (int index : axis.indices) {
      if (!workload.sizes()[index].fixed()) return false;
      extent *= workload.sizes()[index].low;
    }
  }
  return extent % part == 0;
}

}  // namespace

SharedCopies::SharedCopies(KernelModule& module, const Contraction& contraction,
                           const KernelModule::DeviceEntry& entry, const ContractionReads& reads,
                           const Shape& shape)
    : m_(module),
      b_(module.builder()),
      c_(contraction),
      entry_(entry),
      reads_(reads),
      shape_(shape) {
  thread_ = b_.CreateZExt(m_.ThreadInBlock(), b_.getInt64Ty());
  a_.operand = &c_.a;
  a_.place = &shape_.a;
  a_.axis = &c_.m;
  b_side_.operand = &c_.b;
  b_side_.place = &shape_.b;
  b_side_.axis = &c_.n;
  b_side_.shared_offset = shape_.stages * shape_.a.stage_bytes;
  for (Side* side : {&a_, &b_side_}) {
    side->extent = reads_.Extent(*side->axis);
    side->fills_tiles = Divides(m_.workload(), {side->axis, 1}, side->place->tile);
  }
  fills_steps_ = Divides(m_.workload(), c_.k, shape_.tile_k);
}

void SharedCopies::RequireAlignments(KernelModule* module, const Contraction& contraction,
                                     const Shape& shape) {
  const auto parameters = module->workload().parameters();
  for (const auto& [operand, place] :
       {std::make_pair(&contraction.a, &shape.a), std::make_pair(&contraction.b, &shape.b)}) {
    if (!place->copied) continue;
    const auto found = std::find(parameters.begin(), parameters.end(), operand->read->tensor);
    int64_t& alignment = module->alignments()[found - parameters.begin()];
    alignment = std::max<int64_t>(alignment, place->chunk_bytes);
  }
}

void SharedCopies::BeginTile(const std::vector<Value*>& indices, Value* row, Value* column) {
  indices_ = indices;
  a_.first = row;
  b_side_.first = column;
  for (Side* side : {&a_, &b_side_}) {
    if (!side->operand->linear) continue;
    const Expr& read = *side->operand->read;
    side->base = reads_.Offset(read.tensor, read.subscripts, indices_);
  }
}

Value* SharedCopies::Pointer(Value* bytes) {
  return b_.CreateGEP(b_.getInt8Ty(), entry_.shared, bytes);
}

Value* SharedCopies::AddressOf(const Side& side, Value* slot, Value* row, Value* depth) {
  const SharedOperand& place = *side.place;
  Value* stage =
      b_.CreateNSWAdd(b_.CreateNSWMul(slot, m_.Int(place.stage_bytes)), m_.Int(side.shared_offset));
  Value* line = place.depth_contiguous ? row : depth;
  Value* along = place.depth_contiguous ? depth : row;
  // What no step changes comes first, so that one addition for each thread's own place remains.
  Value* within = b_.CreateNSWAdd(b_.CreateNSWMul(line, m_.Int(place.pitch_bytes)),
                                  b_.CreateNSWMul(along, m_.Int(Info(place.type).bytes)));
  return b_.CreateNSWAdd(within, stage);
}

// Calls body(row, depth, number) for each piece of `length` rows or depths that belongs to the
// thread; both count from the tile's corner.
void SharedCopies::ForPieces(const SharedOperand& place, bool along_depth, int64_t length,
                             const std::function<void(Value*, Value*, int)>& body) {
  const int64_t line = (along_depth ? shape_.tile_k : place.tile) / length;  // pieces of a line
  const int64_t pieces = line * (along_depth ? place.tile : shape_.tile_k);
  for (int64_t i = 0; i * shape_.block < pieces; ++i) {
    Value* piece = b_.CreateNSWAdd(thread_, m_.Int(i * shape_.block));
    auto one = [&] {
      Value* along = b_.CreateNSWMul(b_.CreateURem(piece, m_.Int(line)), m_.Int(length));
      Value* across = b_.CreateUDiv(piece, m_.Int(line));
      body(along_depth ? across : along, along_depth ? along : across, static_cast<int>(i));
    };
    if ((i + 1) * shape_.block <= pieces) {
      one();
    } else {
      m_.If(b_.CreateICmpSLT(piece, m_.Int(pieces)), one);
    }
  }
}

Value* SharedCopies::ElementOffset(const Side& side, Value* row, Value* depth) {
  Value* along_row = b_.CreateNSWMul(row, reads_.Of(side.operand->row_stride));
  Value* along_depth = b_.CreateNSWMul(depth, reads_.Of(side.operand->depth_stride));
  return b_.CreateNSWAdd(side.base, b_.CreateNSWAdd(along_row, along_depth));
}

// Starts the copy of a step as it lies (PTX ISA, "cp.async": of a chunk of which fewer bytes are
// there, the rest is filled with zeros; where none is, nothing is read, wherever the address
// points).
void SharedCopies::CopyAsync(const Side& side, Value* slot, Value* depth0) {
  const SharedOperand& place = *side.place;
  const int bytes = Info(place.type).bytes;
  const int64_t length = place.chunk_bytes / bytes;
  const bool deep = place.depth_contiguous;
  const llvm::Intrinsic::ID copy =
      place.chunk_bytes == 16  ? llvm::Intrinsic::nvvm_cp_async_cg_shared_global_16_s
      : place.chunk_bytes == 8 ? llvm::Intrinsic::nvvm_cp_async_ca_shared_global_8_s
                               : llvm::Intrinsic::nvvm_cp_async_ca_shared_global_4_s;
  Value* buffer = reads_.Buffer(side.operand->read->tensor);
  // Steps beyond the last are all outside.
  Value* step_there = b_.CreateICmpSLT(depth0, reads_.K());
  ForPieces(place, deep, length, [&](Value* row, Value* depth, int) {
    Value* y = b_.CreateNSWAdd(side.first, row);
    Value* k = b_.CreateNSWAdd(depth0, depth);
    // Elements of the chunk that are there, as far as its own direction goes.
    Value* count = m_.Int(length);
    if (deep ? !fills_steps_ : !side.fills_tiles) {
      Value* left = b_.CreateNSWSub(deep ? reads_.K() : side.extent, deep ? k : y);
      count = m_.Max(m_.Min(left, count), m_.Int(0));
    }
    Value* there = fills_steps_ ? step_there : b_.CreateICmpSLT(k, reads_.K());
    if (!side.fills_tiles) there = b_.CreateAnd(there, b_.CreateICmpSLT(y, side.extent));
    Value* size = b_.CreateSelect(there, b_.CreateNSWMul(count, m_.Int(bytes)), m_.Int(0));
    b_.CreateIntrinsic(
        copy, {},
        {Pointer(AddressOf(side, slot, row, depth)),
         b_.CreateGEP(StorageBits(m_, place.type, 1), buffer, ElementOffset(side, y, k)),
         b_.CreateTrunc(size, b_.getInt32Ty())});
  });
}

// Reads a step element by element, as it will be stored; 0 where there is none.
void SharedCopies::ReadElements(Side* side, Value* depth0) {
  const SharedOperand& place = *side->place;
  llvm::Type* type = StorageBits(m_, place.type, 1);
  ForPieces(place, place.threads_along_depth, 1, [&](Value* row, Value* depth, int number) {
    Value* y = b_.CreateNSWAdd(side->first, row);
    Value* k = b_.CreateNSWAdd(depth0, depth);
    Value* inside =
        b_.CreateAnd(b_.CreateICmpSLT(y, side->extent), b_.CreateICmpSLT(k, reads_.K()));
    Value* element = nullptr;
    if (side->operand->linear) {
      // The tensor's first element exists.
      Value* offset = b_.CreateSelect(inside, ElementOffset(*side, y, k), m_.Int(0));
      element = reads_.Adjacent(*side->operand, offset, 1);
    } else {
      element = AnyElement(*side, y, k);
    }
    element = NarrowElements(m_, place.type, element);
    // A slot, since a piece may be read under a condition.
    if (side->held.size() <= static_cast<size_t>(number))
      side->held.push_back(m_.Local(type, "held", 1, 8));
    b_.CreateStore(b_.CreateSelect(inside, element, llvm::Constant::getNullValue(type)),
                   side->held[number]);
  });
}

Value* SharedCopies::AnyElement(const Side& side, Value* row, Value* depth) {
  std::vector<Value*> indices = indices_;
  if (!side.axis->indices.empty())
    indices[side.axis->lead()] = m_.Min(row, b_.CreateNSWSub(side.extent, m_.Int(1)));
  reads_.SetK(m_.Min(depth, b_.CreateNSWSub(reads_.K(), m_.Int(1))), &indices);
  return reads_.Element(*side.operand, indices);
}

void SharedCopies::StoreElements(const Side& side, Value* slot) {
  const SharedOperand& place = *side.place;
  llvm::Type* type = StorageBits(m_, place.type, 1);
  ForPieces(place, place.threads_along_depth, 1, [&](Value* row, Value* depth, int number) {
    b_.CreateAlignedStore(b_.CreateLoad(type, side.held[number]),
                          Pointer(AddressOf(side, slot, row, depth)),
                          llvm::Align(static_cast<uint64_t>(Info(place.type).bytes)));
  });
}

void SharedCopies::StartStep(Value* slot, Value* depth) {
  for (Side* side : {&a_, &b_side_}) {
    if (side->place->copied) {
      CopyAsync(*side, slot, depth);
    } else {
      ReadElements(side, depth);
    }
  }
  if (AnyCopied()) b_.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_commit_group, {}, {});
}

void SharedCopies::StoreStep(Value* slot) {
  for (const Side* side : {&a_, &b_side_}) {
    if (!side->place->copied) StoreElements(*side, slot);
  }
}

// Waits until at most `pending` of the thread's latest steps are on their way.
void SharedCopies::WaitForCopies(int pending) {
  if (!AnyCopied()) return;
  b_.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_wait_group, {},
                     {b_.getInt32(static_cast<uint32_t>(pending))});
}

void SharedCopies::ForSteps(const std::function<void(Value*)>& body) {
  if (shape_.stages == 1) {
    m_.For(m_.Int(0), reads_.K(), shape_.tile_k, "step", [&](Value* depth) {
      StartStep(m_.Int(0), depth);
      m_.Barrier();  // the last step has been worked on
      StoreStep(m_.Int(0));
      m_.Barrier();
      body(m_.Int(0));
    });
    return;
  }
  const int ahead = shape_.stages - 1;
  for (int s = 0; s < ahead; ++s) {
    StartStep(m_.Int(s), m_.Int(int64_t{s} * shape_.tile_k));
    StoreStep(m_.Int(s));
  }
  // Slots count on in a variable of their own: remainders would be taken apart into long chains.
  llvm::AllocaInst* slot_now = m_.Local(b_.getInt64Ty(), "slot", 1, 8);
  b_.CreateStore(m_.Int(0), slot_now);
  m_.For(m_.Int(0), m_.CeilDiv(reads_.K(), shape_.tile_k), 1, "step", [&](Value* step) {
    WaitForCopies(ahead - 1);
    m_.Barrier();
    Value* slot = b_.CreateLoad(b_.getInt64Ty(), slot_now);
    // The slot that the last step has left.
    Value* before = b_.CreateNSWSub(slot, m_.Int(1));
    Value* free_slot =
        b_.CreateSelect(b_.CreateICmpEQ(slot, m_.Int(0)), m_.Int(shape_.stages - 1), before);
    StartStep(free_slot,
              b_.CreateNSWMul(b_.CreateNSWAdd(step, m_.Int(ahead)), m_.Int(shape_.tile_k)));
    body(slot);
    StoreStep(free_slot);
    Value* after = b_.CreateNSWAdd(slot, m_.Int(1));
    b_.CreateStore(b_.CreateSelect(b_.CreateICmpEQ(after, m_.Int(shape_.stages)), m_.Int(0), after),
                   slot_now);
  });
  WaitForCopies(0);
}

}  // namespace tilewright
