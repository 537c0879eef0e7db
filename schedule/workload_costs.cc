// What a workload costs at least: arithmetic operations, and the bytes that every correct kernel
// moves.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "schedule/affine.h"
#include "schedule/workload.h"

namespace tilewright {
namespace {

// Operations of one evaluation of a call itself, operands apart.
double OperationsOfCall(const Expr& call) {
  switch (call.function) {
    case Function::kAdd:
    case Function::kMul:
    case Function::kMin:
    case Function::kMax:
      return static_cast<double>(call.operands.size()) - 1;
    case Function::kNeg:  // part of a subtraction
    case Function::kAnd:
    case Function::kOr:
    case Function::kNot:
      return 0;
    default:
      return 1;
  }
}

double OperationsOfTree(const Expr& expr, double points, absl::Span<const int64_t> sizes) {
  double operations = 0;
  if (expr.kind == Expr::Kind::kCall) operations = points * OperationsOfCall(expr);
  if (expr.kind == Expr::Kind::kReduce) {
    for (int index : expr.reduce_indices) points *= static_cast<double>(sizes[index]);
    operations = points;
  }
  for (const ExprPtr& operand : expr.operands) {
    operations += OperationsOfTree(*operand, points, sizes);
  }
  return operations;
}

// The subscript values that occur in one dimension, clipped to it.
using Box = std::vector<IndexInterval>;

// Counts the elements of one parameter that are surely read: a lower bound, exact for reads whose
// subscripts are intervals.
class ReadCounter {
 public:
  ReadCounter(const Workload& workload, int tensor, absl::Span<const int64_t> sizes)
      : tensor_(tensor), shape_(workload.Shape(tensor, sizes)) {
    Region all;
    for (int64_t size : sizes) all.values.push_back({0, size - 1});
    for (const Statement& statement : workload.program().statements) Visit(*statement.value, all);
  }

  double Elements() const {
    double most = 0;
    for (const Box& box : boxes_) most = std::max(most, Volume(box));
    // Several reads that differ in one dimension only cover their union there.
    for (size_t d = 0; d < shape_.size(); ++d) most = std::max(most, UnionAlong(d));
    return most;
  }

 private:
  // The points at which an expression is evaluated: intervals by index, each of whose values
  // occurs. Indices that one condition compares are coupled: their values don't occur in every
  // combination.
  struct Region {
    std::vector<IndexInterval> values;
    std::vector<std::vector<int>> coupled;
  };

  static int64_t Length(const IndexInterval& i) { return i.high < i.low ? 0 : i.high - i.low + 1; }

  static double Volume(const Box& box) {
    double volume = 1;
    for (const IndexInterval& interval : box) volume *= static_cast<double>(Length(interval));
    return volume;
  }

  double UnionAlong(size_t dimension) const {
    if (boxes_.empty()) return 0;
    Box rest = boxes_[0];
    std::vector<std::pair<int64_t, int64_t>> intervals;
    for (const Box& box : boxes_) {
      for (size_t d = 0; d < box.size(); ++d) {
        if (d == dimension) continue;
        if (box[d].low != rest[d].low || box[d].high != rest[d].high) return 0;
      }
      intervals.emplace_back(box[dimension].low, box[dimension].high);
    }
    rest[dimension] = {0, 0};
    std::sort(intervals.begin(), intervals.end());
    int64_t covered = 0;
    int64_t next = 0;  // the first value not counted yet
    for (const auto& [low, high] : intervals) {
      covered += std::max<int64_t>(0, high - std::max(low, next) + 1);
      next = std::max(next, high + 1);
    }
    return Volume(rest) * static_cast<double>(covered);
  }

  void Visit(const Expr& expr, const Region& region) {
    if (expr.kind == Expr::Kind::kRead && expr.tensor == tensor_) AddRead(expr, region);
    if (expr.kind == Expr::Kind::kCall && expr.function == Function::kWhere) {
      Visit(*expr.operands[0], region);
      for (bool taken : {true, false}) {
        const std::optional<Region> inside = Restrict(*expr.operands[0], taken, region);
        if (inside.has_value()) Visit(*expr.operands[taken ? 1 : 2], *inside);
      }
      return;
    }
    for (const ExprPtr& operand : expr.operands) Visit(*operand, region);
  }

  // The part of `region` at which `condition` is `taken`; nullopt where data decides or nothing is
  // left.
  static std::optional<Region> Restrict(const Expr& condition, bool taken, const Region& region) {
    switch (condition.function) {
      case Function::kNot:
        return Restrict(*condition.operands[0], !taken, region);
      case Function::kAnd:
      case Function::kOr: {
        // Only where both sides must come out as `taken`; otherwise the reads are not counted.
        if ((condition.function == Function::kAnd) != taken) return std::nullopt;
        // Each side narrows what the other leaves, so both are applied again.
        std::optional<Region> result = region;
        for (int i = 0; i < 4 && result.has_value(); ++i) {
          result = Restrict(*condition.operands[i % 2], taken, *result);
        }
        return result;
      }
      case Function::kLess:
      case Function::kLessEqual: {
        const std::optional<AffineIndex> a = ToAffine(*condition.operands[0]);
        const std::optional<AffineIndex> b = ToAffine(*condition.operands[1]);
        AffineIndex difference;  // <= 0
        const bool is_strict = (condition.function == Function::kLess) == taken;
        if (!a.has_value() || !b.has_value() || !AddScaled(*a, taken ? 1 : -1, &difference) ||
            !AddScaled(*b, taken ? -1 : 1, &difference)) {
          return std::nullopt;
        }
        difference.constant += is_strict ? 1 : 0;
        return AtMostZero(difference, region);
      }
      default:
        return std::nullopt;
    }
  }

  static std::optional<Region> AtMostZero(const AffineIndex& affine, const Region& region) {
    Region result = region;
    result.coupled.emplace_back();
    affine.CollectIndices(&result.coupled.back());
    for (const AffineTerm& term : affine.terms) {
      if (term.kind != AffineTerm::Kind::kIndex) return std::nullopt;
      AffineIndex others = affine;
      others.terms.clear();
      for (const AffineTerm& other : affine.terms) {
        if (other.index != term.index) others.terms.push_back(other);
      }
      const std::optional<IndexInterval> bounds = Bounds(others, region.values);
      if (!bounds.has_value()) return std::nullopt;
      // coefficient * value <= room
      const int64_t room = -bounds->low;
      const int64_t c = term.coefficient;
      const int64_t quotient = room / c - (room % c != 0 && (room < 0) != (c < 0) ? 1 : 0);
      IndexInterval& interval = result.values[term.index];
      if (c > 0) {
        interval.high = std::min(interval.high, quotient);
      } else {
        interval.low = std::max(interval.low, room % c == 0 ? quotient : quotient + 1);
      }
      if (interval.low > interval.high) return std::nullopt;
    }
    return result;
  }

  static bool AreCoupled(const Region& region, int a, int b) {
    auto has = [](const std::vector<int>& set, int index) {
      return std::find(set.begin(), set.end(), index) != set.end();
    };
    return a == b || std::any_of(region.coupled.begin(), region.coupled.end(),
                                 [&](const auto& set) { return has(set, a) && has(set, b); });
  }

  void AddRead(const Expr& read, const Region& region) {
    Box box;
    std::vector<int> used;
    for (size_t d = 0; d < shape_.size(); ++d) {
      const AffineIndex& subscript = read.subscripts[d];
      std::vector<int> own;
      subscript.CollectIndices(&own);
      bool is_apart = true;
      for (int index : own) {
        is_apart = is_apart && std::none_of(used.begin(), used.end(), [&](int other) {
                     return AreCoupled(region, index, other);
                   });
      }
      used.insert(used.end(), own.begin(), own.end());
      // A dimension that depends on another's index adds no elements for sure.
      box.push_back(is_apart ? Covered(subscript, region.values, shape_[d]) : IndexInterval{0, 0});
    }
    boxes_.push_back(std::move(box));
  }

  // An interval with as many values as the subscript surely takes inside 0 … size-1.
  static IndexInterval Covered(const AffineIndex& subscript,
                               const std::vector<IndexInterval>& values, int64_t size) {
    if (subscript.terms.empty()) {
      const bool inside = subscript.constant >= 0 && subscript.constant < size;
      return inside ? IndexInterval{subscript.constant, subscript.constant} : IndexInterval{0, -1};
    }
    const std::optional<IndexInterval> bounds = Bounds(subscript, values);
    if (!bounds.has_value()) return {0, 0};
    const IndexInterval clipped = {std::max<int64_t>(bounds->low, 0),
                                   std::min(bounds->high, size - 1)};
    // Terms sorted by coefficient cover every value between the bounds if each step is bridged by
    // the smaller ones.
    std::vector<std::pair<int64_t, int64_t>> terms;  // (|coefficient|, steps)
    for (const AffineTerm& term : subscript.terms) {
      AffineIndex atom;
      atom.terms = {term};
      const std::optional<IndexInterval> reach = Bounds(atom, values);
      const int64_t c = std::abs(term.coefficient);
      if (term.kind == AffineTerm::Kind::kFloorMod) return {clipped.low, clipped.low};
      terms.emplace_back(c, (reach->high - reach->low) / c);
    }
    std::sort(terms.begin(), terms.end());
    int64_t bridged = 1;  // consecutive values reached so far
    for (const auto& [coefficient, steps] : terms) {
      if (coefficient <= bridged) {
        bridged += coefficient * steps;
      } else if (terms.size() == 1) {
        // One term with a stride: every |coefficient|-th value.
        return {0, Length(clipped) > 0 ? (Length(clipped) - 1) / coefficient : -1};
      } else {
        return {clipped.low, clipped.low};
      }
    }
    return clipped;
  }

  int tensor_;
  std::vector<int64_t> shape_;
  std::vector<Box> boxes_;
};

}  // namespace

double Workload::Operations(absl::Span<const int64_t> sizes) const {
  double operations = 0;
  for (const Statement& statement : program_.statements) {
    double points = 1;
    for (int index : statement.indices) points *= static_cast<double>(sizes[index]);
    operations += OperationsOfTree(*statement.value, points, sizes);
  }
  return operations;
}

double Workload::CompulsoryBytes(absl::Span<const int64_t> sizes) const {
  double bytes = 0;
  for (int tensor : parameters_) {
    bytes += ReadCounter(*this, tensor, sizes).Elements() * Info(layouts_[tensor].type).bytes;
  }
  for (int tensor : outputs_) {
    double elements = 1;
    for (int64_t size : Shape(tensor, sizes)) elements *= static_cast<double>(size);
    bytes += elements * Info(layouts_[tensor].type).bytes;
  }
  return bytes;
}

}  // namespace tilewright
