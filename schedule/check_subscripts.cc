#include "schedule/check_subscripts.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "schedule/affine.h"
#include "schedule/source_text.h"

namespace tilewright {
namespace {

class SubscriptChecker {
 public:
  // Sizes are the upper ends, or the lower ends.
  SubscriptChecker(const Program& program, absl::Span<const SizeRange> sizes,
                   absl::Span<const TensorLayout> layouts, std::string_view source, bool upper)
      : program_(program), layouts_(layouts), source_(source) {
    for (const SizeRange& size : sizes) {
      values_.push_back({0, (upper ? size.high : size.low) - 1});
    }
  }

  absl::Status Check(const Expr& expr, bool in_sum) const {
    if (expr.kind == Expr::Kind::kIndexValue) {
      if (!Bounds(expr.index_value, values_).has_value()) return TooLarge(expr);
    }
    for (size_t d = 0; d < expr.subscripts.size(); ++d) {
      const AffineIndex& subscript = expr.subscripts[d];
      if (subscript.BareIndex() >= 0) continue;
      const std::optional<IndexInterval> bounds = Bounds(subscript, values_);
      if (!bounds.has_value()) return TooLarge(expr);
      const Dimension& dimension = layouts_[expr.tensor].dimensions[d];
      const int64_t size =
          dimension.index >= 0 ? values_[dimension.index].high + 1 : dimension.size;
      const bool inside = bounds->low >= 0 && bounds->high < size;
      if (inside || in_sum || StaysInside(subscript, size)) continue;
      return ErrorAt(
          source_, expr.span.begin,
          absl::StrCat("subscript ", d, " of '", program_.tensors[expr.tensor].name, "' reaches ",
                       bounds->low, "..", bounds->high, " but the dimension has 0..", size - 1,
                       "; a read may leave its tensor only inside sum, where it is 0"));
    }
    in_sum = in_sum || (expr.kind == Expr::Kind::kReduce && expr.reduce == ReduceOp::kSum);
    for (const ExprPtr& operand : expr.operands) {
      const absl::Status status = Check(*operand, in_sum);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  absl::Status TooLarge(const Expr& expr) const {
    return ErrorAt(source_, expr.span.begin, "an index expression here may exceed 2^60");
  }

  // Point by point over the indices that the subscript reads.
  bool StaysInside(const AffineIndex& subscript, int64_t size) const {
    constexpr int64_t kMostPoints = int64_t{1} << 20;
    std::vector<int> indices;
    subscript.CollectIndices(&indices);
    int64_t points = 1;
    for (int index : indices) {
      const int64_t count = values_[index].high + 1;
      if (count > kMostPoints / points) return false;
      points *= count;
    }
    std::vector<int64_t> at(values_.size(), 0);
    for (int64_t point = 0; point < points; ++point) {
      int64_t rest = point;
      for (int index : indices) {
        const int64_t count = values_[index].high + 1;
        at[index] = rest % count;
        rest /= count;
      }
      const int64_t value = subscript.Evaluate(at);
      if (value < 0 || value >= size) return false;
    }
    return true;
  }

  const Program& program_;
  absl::Span<const TensorLayout> layouts_;
  std::string_view source_;
  std::vector<IndexInterval> values_;  // by index
};

}  // namespace

absl::Status CheckSubscripts(const Program& program, absl::Span<const SizeRange> sizes,
                             absl::Span<const TensorLayout> layouts, std::string_view source) {
  for (bool upper : {true, false}) {
    const SubscriptChecker checker(program, sizes, layouts, source, upper);
    for (const Statement& statement : program.statements) {
      const absl::Status status = checker.Check(*statement.value, false);
      if (!status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace tilewright
