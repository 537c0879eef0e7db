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

// The only list of libraries: on which backend, and how many algorithms it is asked for.
struct LibraryRow {
  const char* name;
  const char* backend;
  int algorithms;  // cuBLASLt offers 8 for products of 16-bit types on Hopper
};
constexpr LibraryRow kLibraries[] = {{"cublaslt", "nvptx", 8}};

absl::StatusOr<LibraryProduct::Operand> OperandOf(const Workload& workload,
                                                  const ContractionOperand& operand,
                                                  const Sizes& sizes) {
  if (!operand.linear || operand.read != operand.value.get() || !operand.batch.empty()) {
    return absl::FailedPreconditionError("a library multiplies stored matrices alone");
  }
  const auto parameters = workload.parameters();
  const auto found = std::find(parameters.begin(), parameters.end(), operand.read->tensor);
  if (found == parameters.end()) {
    return absl::FailedPreconditionError("a library multiplies parameters alone");
  }
  LibraryProduct::Operand result;
  result.buffer = static_cast<int>(found - parameters.begin());
  const int64_t row = operand.row_stride.Evaluate(sizes);
  const int64_t depth = operand.depth_stride.Evaluate(sizes);
  if (depth != 1 && row != 1) {
    return absl::FailedPreconditionError("a library's matrices are contiguous along one axis");
  }
  result.depth_contiguous = depth == 1;
  result.stride = depth == 1 ? row : depth;
  return result;
}

}  // namespace

absl::StatusOr<LibraryProduct> MatchLibraryProduct(const Workload& workload, const Sizes& sizes) {
  const absl::StatusOr<Contraction> match = MatchContraction(workload);
  if (!match.ok()) return match.status();
  if (!match->batch.empty() || !match->plain_epilogue) {
    return absl::FailedPreconditionError("batches and epilogues are not compared with libraries");
  }
  LibraryProduct product;
  const absl::StatusOr<LibraryProduct::Operand> a = OperandOf(workload, match->a, sizes);
  if (!a.ok()) return a.status();
  const absl::StatusOr<LibraryProduct::Operand> b = OperandOf(workload, match->b, sizes);
  if (!b.ok()) return b.status();
  product.a = *a;
  product.b = *b;
  product.operand_type = workload.layout(match->a.read->tensor).type;
  product.output_type = workload.layout(match->output).type;
  const bool small =
      product.operand_type == ElementType::kF16 || product.operand_type == ElementType::kBF16;
  const bool types =
      product.operand_type == workload.layout(match->b.read->tensor).type &&
      (product.output_type == product.operand_type || product.output_type == ElementType::kF32) &&
      (small || product.operand_type == ElementType::kF32);
  if (!types) return absl::FailedPreconditionError("types that are not compared with libraries");
  product.m = match->m.Extent(sizes);
  product.n = match->n.Extent(sizes);
  product.k = match->K(sizes);
  if (match->output_column_stride.Evaluate(sizes) != 1) {
    return absl::FailedPreconditionError("a library's result is contiguous along a row");
  }
  const auto outputs = workload.outputs();
  product.c.buffer =
      static_cast<int>(workload.parameters().size()) +
      static_cast<int>(std::find(outputs.begin(), outputs.end(), match->output) - outputs.begin());
  product.c.stride = match->output_row_stride.Evaluate(sizes);
  // A matrix of one row or column may have any stride; libraries want a valid one.
  product.c.stride = std::max(product.c.stride, product.n);
  product.a.stride = std::max(product.a.stride, product.a.depth_contiguous ? product.k : product.m);
  product.b.stride = std::max(product.b.stride, product.b.depth_contiguous ? product.k : product.n);
  return product;
}

std::vector<Schedule> LibrarySchedules(const Workload& workload, const Target& target,
                                       const Sizes& sizes) {
  std::vector<Schedule> schedules;
  if (workload.has_range() || !MatchLibraryProduct(workload, sizes).ok()) return schedules;
  for (const LibraryRow& library : kLibraries) {
    if (target.backend != library.backend) continue;
    for (int algorithm = 0; algorithm < library.algorithms; ++algorithm) {
      schedules.push_back(
          {kLibraryVariant, {{"name", library.name}, {"algo", absl::StrCat(algorithm)}}});
    }
  }
  return schedules;
}

bool IsLibrary(const Schedule& schedule) { return schedule.variant == kLibraryVariant; }

}  // namespace tilewright
