#include "schedule/library_product.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "schedule/match.h"

namespace tilewright {
namespace {

constexpr char kLibraryVariant[] = "contraction.library";

// cuBLASLt: products of one type with f32 sums, of 8 bits with wider results. Its gelu is the tanh
// form, within 5e-4 of gelu: what the output check's error bound admits competes, the rest fails
// there as a wrong kernel would. FP8 is written where both operands are contiguous along k only
// (cuBLAS Library, "cublasLtMatmul", the table of FP8 kernels), i8 without an epilogue.
bool CublasLtTakes(const LibraryProduct& p) {
  if (p.bias >= 0 && p.bias_type != p.output_type) return false;
  switch (p.operand_type) {
    case ElementType::kF16:
    case ElementType::kBF16:
      return p.output_type == p.operand_type || p.output_type == ElementType::kF32;
    case ElementType::kF32:
      return p.output_type == ElementType::kF32;
    case ElementType::kE4M3:
      return p.a.depth_contiguous && p.b.depth_contiguous &&
             (p.output_type == ElementType::kF16 || p.output_type == ElementType::kBF16 ||
              p.output_type == ElementType::kF32);
    case ElementType::kI8:
      return p.output_type == ElementType::kI32 && !p.has_epilogue();
    default:
      return false;
  }
}

// The C interface of BLAS: a single product in the type of its operands.
bool BlasTakes(const LibraryProduct& p) {
  return p.operand_type == ElementType::kF32 && p.output_type == ElementType::kF32 &&
         p.batches == 1 && !p.has_epilogue();
}

absl::Status Refused(const char* reason) { return absl::FailedPreconditionError(reason); }

// How far a read moves along an axis; an error if that differs from place to place.
absl::StatusOr<int64_t> MovesAlong(const Workload& workload, int tensor,
                                   absl::Span<const AffineIndex> subscripts, const Axis& axis,
                                   const Sizes& sizes) {
  if (axis.indices.empty()) return 0;
  const std::optional<Stride> stride = StrideAlong(workload, tensor, subscripts, axis.lead());
  if (!stride) return Refused("a library's matrices move by fixed strides");
  return stride->Evaluate(sizes);
}

absl::StatusOr<int64_t> BatchStride(const Workload& workload, int tensor,
                                    absl::Span<const AffineIndex> subscripts,
                                    const Contraction& match, const Sizes& sizes) {
  if (match.batch.empty()) return 0;
  return MovesAlong(workload, tensor, subscripts, match.batch[0], sizes);
}

absl::StatusOr<LibraryProduct::Operand> OperandOf(const Workload& workload,
                                                  const Contraction& match,
                                                  const ContractionOperand& operand,
                                                  const Sizes& sizes) {
  if (!operand.linear || operand.read != operand.value.get())
    return Refused("a library multiplies stored matrices alone");
  LibraryProduct::Operand result;
  result.buffer = workload.BufferOf(operand.read->tensor);
  if (result.buffer < 0 || result.buffer >= static_cast<int>(workload.parameters().size()))
    return Refused("a library multiplies parameters alone");
  const int64_t row = operand.row_stride.Evaluate(sizes);
  const int64_t depth = operand.depth_stride.Evaluate(sizes);
  if (depth != 1 && row != 1) return Refused("a library's matrices are contiguous along one axis");
  result.depth_contiguous = depth == 1;
  result.stride = depth == 1 ? row : depth;
  const absl::StatusOr<int64_t> batch =
      BatchStride(workload, operand.read->tensor, operand.read->subscripts, match, sizes);
  if (!batch.ok()) return batch.status();
  result.batch_stride = *batch;
  return result;
}

// Reads the epilogue: an activation around a sum of the scaled product, a bias along n and a
// residual.
class EpilogueMatch {
 public:
  EpilogueMatch(const Workload& workload, const Contraction& match, const Sizes& sizes,
                LibraryProduct* product)
      : workload_(workload), match_(match), sizes_(sizes), product_(*product) {}

  absl::Status Read() {
    const Expr* value = match_.epilogue.get();
    if (IsCall(*value, Function::kRelu)) product_.activation = LibraryProduct::Activation::kRelu;
    if (IsCall(*value, Function::kGelu)) product_.activation = LibraryProduct::Activation::kGelu;
    if (product_.activation != LibraryProduct::Activation::kNone) value = value->operands[0].get();
    if (!IsCall(*value, Function::kAdd)) return ReadTerm(*value);
    for (const ExprPtr& term : value->operands) {
      if (absl::Status status = ReadTerm(*term); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  static bool IsCall(const Expr& expr, Function function) {
    return expr.kind == Expr::Kind::kCall && expr.function == function;
  }

  absl::Status ReadTerm(const Expr& term) {
    if (term.kind == Expr::Kind::kReduce) return absl::OkStatus();
    if (term.kind == Expr::Kind::kRead) return ReadAddend(term);
    const bool scaled = IsCall(term, Function::kMul) && term.operands.size() == 2;
    for (int i = 0; scaled && i < 2; ++i) {
      if (term.operands[i]->kind != Expr::Kind::kConstant ||
          term.operands[1 - i]->kind != Expr::Kind::kReduce)
        continue;
      product_.scale = term.operands[i]->constant;
      return absl::OkStatus();
    }
    return Refused("an epilogue that libraries do not write");
  }

  absl::Status ReadAddend(const Expr& read) {
    const auto along_m = MovesAlong(workload_, read.tensor, read.subscripts, match_.m, sizes_);
    const auto along_n = MovesAlong(workload_, read.tensor, read.subscripts, match_.n, sizes_);
    const auto batch = BatchStride(workload_, read.tensor, read.subscripts, match_, sizes_);
    for (const auto* stride : {&along_m, &along_n, &batch}) {
      if (!stride->ok()) return stride->status();
    }
    if (*along_n != 1 || !StaysInside(workload_, read.tensor, read.subscripts))
      return Refused("what libraries add is contiguous along a row");
    const ElementType type = workload_.layout(read.tensor).type;
    const int buffer = workload_.BufferOf(read.tensor);
    if (*along_m == 0 && *batch == 0 && product_.bias < 0) {
      product_.bias = buffer;
      product_.bias_type = type;
      return absl::OkStatus();
    }
    if (*along_m == 0 || product_.has_residual || type != product_.output_type)
      return Refused("libraries add one bias and one matrix of the result's type");
    product_.has_residual = true;
    product_.residual = {buffer, true, *along_m, *batch};
    return absl::OkStatus();
  }

  const Workload& workload_;
  const Contraction& match_;
  const Sizes& sizes_;
  LibraryProduct& product_;
};

}  // namespace

absl::StatusOr<LibraryProduct> MatchLibraryProduct(const Workload& workload, const Sizes& sizes) {
  const absl::StatusOr<Contraction> match = MatchContraction(workload);
  if (!match.ok()) return match.status();
  if (match->batch.size() > 1) return Refused("a library's batch has one stride");
  LibraryProduct product;
  const absl::StatusOr<LibraryProduct::Operand> a = OperandOf(workload, *match, match->a, sizes);
  if (!a.ok()) return a.status();
  const absl::StatusOr<LibraryProduct::Operand> b = OperandOf(workload, *match, match->b, sizes);
  if (!b.ok()) return b.status();
  product.a = *a;
  product.b = *b;
  product.operand_type = workload.layout(match->a.read->tensor).type;
  product.output_type = workload.layout(match->output).type;
  if (product.operand_type != workload.layout(match->b.read->tensor).type)
    return Refused("a library's operands have one type");
  product.m = match->m.Extent(sizes);
  product.n = match->n.Extent(sizes);
  product.k = match->K(sizes);
  product.batches = match->Batches(sizes);
  if (match->output_column_stride.Evaluate(sizes) != 1)
    return Refused("a library's result is contiguous along a row");
  product.c.buffer = workload.BufferOf(match->output);
  product.c.stride = match->output_row_stride.Evaluate(sizes);
  const absl::StatusOr<int64_t> batch =
      BatchStride(workload, match->output, match->output_subscripts, *match, sizes);
  if (!batch.ok()) return batch.status();
  product.c.batch_stride = *batch;
  if (absl::Status status = EpilogueMatch(workload, *match, sizes, &product).Read(); !status.ok())
    return status;
  // A matrix of one row or column may have any stride; libraries want a valid one.
  product.c.stride = std::max(product.c.stride, product.n);
  if (product.has_residual) product.residual.stride = std::max(product.residual.stride, product.n);
  product.a.stride = std::max(product.a.stride, product.a.depth_contiguous ? product.k : product.m);
  product.b.stride = std::max(product.b.stride, product.b.depth_contiguous ? product.k : product.n);
  return product;
}

absl::Span<const Library> AllLibraries() {
  // cuBLASLt offers 8 algorithms for products of 16-bit types on Hopper; 32 MiB is its own advice
  // for a workspace there.
  static constexpr Library kLibraries[] = {
      {"cublaslt", "nvptx", 8, int64_t{32} << 20, CublasLtTakes},
      {"openblas", "host", 1, 0, BlasTakes},
      {"onednn", "host", 1, 0, BlasTakes},
  };
  return kLibraries;
}

std::vector<Schedule> LibrarySchedules(const Workload& workload, const Target& target,
                                       const Sizes& sizes, absl::Span<const Library> libraries) {
  std::vector<Schedule> schedules;
  if (workload.has_range()) return schedules;
  const absl::StatusOr<LibraryProduct> product = MatchLibraryProduct(workload, sizes);
  if (!product.ok()) return schedules;
  for (const Library& library : libraries) {
    if (target.backend != library.backend || !library.takes(*product)) continue;
    for (int algorithm = 0; algorithm < library.algorithms; ++algorithm) {
      schedules.push_back(
          {kLibraryVariant, {{"name", library.name}, {"algo", absl::StrCat(algorithm)}}});
    }
  }
  return schedules;
}

bool IsLibrary(const Schedule& schedule) { return schedule.variant == kLibraryVariant; }

}  // namespace tilewright
