// How a program is read as a contraction:
//   1. Fold    the statements into one expression with one sum.
//   2. Split   the product under the sum into two groups of factors, so that the output indices
//   which only one group has
//              (m and n) are as many positions as possible.
//   3. Fuse    neighbouring indices of a role that every tensor strides alike.
//   4. Orient  so that n is the axis along which the output is contiguous.
//   5. Describe each operand: is it one read with fixed strides?
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "schedule/compute_type.h"
#include "schedule/match.h"

namespace tilewright {
namespace {

using IndexSet = std::set<int>;

absl::Status NoContraction(const Program& program, const Statement& statement,
                           absl::string_view reason) {
  return absl::FailedPreconditionError(
      absl::StrCat(program.tensors[statement.tensor].name, " = ",
                   std::string(ToString(program, *statement.value)), ": ", reason));
}

IndexSet IndicesOf(const Expr& expr) {
  std::vector<int> found;
  IndexSet bound;
  Walk(expr, [&](const Expr& e) {
    for (const AffineIndex& subscript : e.subscripts) subscript.CollectIndices(&found);
    e.index_value.CollectIndices(&found);
  });
  return IndexSet(found.begin(), found.end());
}

// ---- 1. Fold
// -----------------------------------------------------------------------------------------------------

AffineIndex Renamed(const AffineIndex& affine, const std::map<int, int>& names) {
  AffineIndex result = affine;
  for (AffineTerm& term : result.terms) {
    if (term.kind == AffineTerm::Kind::kIndex) {
      auto found = names.find(term.index);
      if (found != names.end()) term.index = found->second;
    } else {
      term.operand = std::make_shared<const AffineIndex>(Renamed(*term.operand, names));
    }
  }
  return result;
}

// Folding writes an intermediate out at each of its reads, so a chain of squares doubles with every
// statement. A program's text has at most 32768 bytes; what folds into more parts than such a text
// can have is no contraction that anybody wrote as one.
constexpr int kMostFoldedParts = 20000;

class Folder {
 public:
  explicit Folder(const Program& program) : program_(program) {}

  // The statement's value with every intermediate tensor replaced by what computes it.
  absl::StatusOr<ExprPtr> Fold(const Statement& statement) {
    return FoldExpr(statement, statement.value, {});
  }

 private:
  absl::StatusOr<ExprPtr> FoldExpr(const Statement& statement, const ExprPtr& expr,
                                   const std::map<int, int>& names) {
    if (++parts_ > kMostFoldedParts) {
      return NoContraction(
          program_, statement,
          absl::StrCat("with its intermediate tensors written out it has more than ",
                       kMostFoldedParts, " parts"));
    }
    auto copy = std::make_shared<Expr>(*expr);
    for (AffineIndex& subscript : copy->subscripts) subscript = Renamed(subscript, names);
    copy->index_value = Renamed(copy->index_value, names);
    if (copy->kind == Expr::Kind::kSize && names.contains(copy->index))
      copy->index = names.at(copy->index);
    for (int index : copy->reduce_indices) {
      for (const auto& [from, to] : names) {
        if (to == index || from == index) {
          return NoContraction(
              program_, statement,
              "a reduction's index is also an index of the statement that reads it");
        }
      }
    }
    if (expr->kind == Expr::Kind::kRead) {
      const Statement* source = Producer(expr->tensor);
      if (source != nullptr) return Replace(statement, *copy, *source);
    }
    for (ExprPtr& operand : copy->operands) {
      absl::StatusOr<ExprPtr> folded = FoldExpr(statement, operand, names);
      if (!folded.ok()) return folded.status();
      operand = *folded;
    }
    return ExprPtr(copy);
  }

  absl::StatusOr<ExprPtr> Replace(const Statement& reader, const Expr& read,
                                  const Statement& source) {
    std::map<int, int> names;
    IndexSet used;
    for (size_t d = 0; d < read.subscripts.size(); ++d) {
      const int index = read.subscripts[d].BareIndex();
      if (index < 0 || !used.insert(index).second) {
        return NoContraction(program_, reader,
                             "reads an intermediate tensor at other than distinct bare indices");
      }
      if (index != source.indices[d]) names[source.indices[d]] = index;
    }
    // Storing an intermediate does not round; a program says `cast` where it should.
    return FoldExpr(source, source.value, names);
  }

  const Statement* Producer(int tensor) const {
    for (const Statement& statement : program_.statements) {
      if (statement.tensor == tensor) return &statement;
    }
    return nullptr;
  }

  const Program& program_;
  int parts_ = 0;
};

// A cast to the type that the value is computed in anyway changes nothing.
ExprPtr WithoutIdleCasts(const ExprPtr& expr, ElementType compute) {
  if (expr->kind == Expr::Kind::kCall && expr->function == Function::kCast &&
      expr->cast_type == compute) {
    return WithoutIdleCasts(expr->operands[0], compute);
  }
  auto copy = std::make_shared<Expr>(*expr);
  for (ExprPtr& operand : copy->operands) operand = WithoutIdleCasts(operand, compute);
  return copy;
}

// ---- 2. Split
// ----------------------------------------------------------------------------------------------------

struct Split {
  std::vector<ExprPtr> first;
  std::vector<ExprPtr> second;
  IndexSet first_only;  // output indices
  IndexSet second_only;
};

std::optional<Split> SplitFactors(const Workload& workload, const std::vector<ExprPtr>& factors,
                                  const IndexSet& output) {
  const Sizes high = workload.HighestSizes();
  std::optional<Split> best;
  double best_gain = 1;
  for (uint32_t choice = 1; choice + 1 < (1u << factors.size()); choice += 2) {
    IndexSet sets[2];
    for (size_t f = 0; f < factors.size(); ++f) {
      for (int index : IndicesOf(*factors[f])) {
        if (output.contains(index)) sets[(choice >> f) & 1].insert(index);
      }
    }
    Split split;
    double gain = 1;
    for (int index : output) {
      if (sets[0].contains(index) == sets[1].contains(index)) continue;
      (sets[1].contains(index) ? split.first_only : split.second_only).insert(index);
      gain *= static_cast<double>(high[index]);
    }
    if (split.first_only.empty() && split.second_only.empty()) continue;
    // Both roles filled is worth more than one long one: a product of two factors is a matrix
    // product.
    if (!split.first_only.empty() && !split.second_only.empty()) gain *= 2;
    if (best.has_value() && gain <= best_gain) continue;
    for (size_t f = 0; f < factors.size(); ++f) {
      (((choice >> f) & 1) != 0 ? split.first : split.second).push_back(factors[f]);
    }
    best_gain = gain;
    best = std::move(split);
  }
  return best;
}

ExprPtr Product(std::vector<ExprPtr> factors) {
  if (factors.size() == 1) return factors[0];
  auto product = std::make_shared<Expr>();
  product->kind = Expr::Kind::kCall;
  product->function = Function::kMul;
  product->operands = std::move(factors);
  return product;
}

// ---- 3. Fuse
// -----------------------------------------------------------------------------------------------------

struct Access {
  int tensor;
  std::vector<AffineIndex> subscripts;
};

class Fuser {
 public:
  Fuser(const Workload& workload, const Contraction& contraction) : workload_(workload) {
    accesses_.push_back({contraction.output, contraction.output_subscripts});
    for (const ExprPtr& expr : {contraction.a.value, contraction.b.value, contraction.epilogue})
      Collect(*expr);
  }

  // Fuses what can be, in the order given: outer indices first.
  std::vector<Axis> Fuse(const std::vector<int>& indices) const {
    std::vector<Axis> axes;
    for (int index : indices) axes.push_back({{index}});
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = 0; i < axes.size() && !changed; ++i) {
        for (size_t j = 0; j < axes.size() && !changed; ++j) {
          if (i == j || !CanFuse(axes[i], axes[j])) continue;
          axes[i].indices.insert(axes[i].indices.end(), axes[j].indices.begin(),
                                 axes[j].indices.end());
          axes.erase(axes.begin() + static_cast<int64_t>(j));
          changed = true;
        }
      }
    }
    return axes;
  }

 private:
  void Collect(const Expr& expr) {
    Walk(expr, [&](const Expr& e) {
      if (e.kind == Expr::Kind::kRead) accesses_.push_back({e.tensor, e.subscripts});
      std::vector<int> found;
      e.index_value.CollectIndices(&found);
      unfusable_.insert(found.begin(), found.end());
      for (const AffineIndex& subscript : e.subscripts) {
        if (subscript.BareIndex() >= 0) continue;
        found.clear();
        subscript.CollectIndices(&found);
        unfusable_.insert(found.begin(), found.end());
      }
    });
  }

  bool CanFuse(const Axis& outer, const Axis& inner) const {
    if (unfusable_.contains(outer.lead()) || unfusable_.contains(inner.lead())) return false;
    for (const Access& access : accesses_) {
      std::optional<Stride> wide =
          StrideAlong(workload_, access.tensor, access.subscripts, outer.lead());
      std::optional<Stride> narrow =
          StrideAlong(workload_, access.tensor, access.subscripts, inner.lead());
      if (!wide.has_value() || !narrow.has_value()) return false;
      if (*wide != TimesExtent(*narrow, inner)) return false;
    }
    return true;
  }

 public:
  Stride TimesExtent(const Stride& stride, const Axis& axis) const {
    Stride result;
    for (Stride::Term term : stride.terms) {
      for (int index : axis.indices) {
        const SizeRange& range = workload_.sizes()[index];
        if (range.fixed()) {
          term.coefficient *= range.low;
        } else {
          term.sizes.push_back(index);
        }
      }
      std::sort(term.sizes.begin(), term.sizes.end());
      result.terms.push_back(std::move(term));
    }
    std::sort(result.terms.begin(), result.terms.end(),
              [](const Stride::Term& x, const Stride::Term& y) { return x.sizes < y.sizes; });
    return result;
  }

 private:
  const Workload& workload_;
  std::vector<Access> accesses_;
  IndexSet unfusable_;
};

// ---- 4. Orient
// ---------------------------------------------------------------------------------------------------

Stride OutputStride(const Workload& workload, const Contraction& c, const Axis& axis) {
  if (axis.indices.empty()) return Stride{};
  return *StrideAlong(workload, c.output, c.output_subscripts, axis.lead());
}

// Takes the axis that lanes should run along out of `axes`: where the output is contiguous, else
// the longest.
Axis TakeBest(const Workload& workload, const Contraction& c, std::vector<Axis>* axes) {
  if (axes->empty()) return Axis{};
  const Sizes high = workload.HighestSizes();
  auto rank = [&](const Axis& axis) {
    const int64_t extent = axis.Extent(high);
    return std::make_pair(extent > 1 && OutputStride(workload, c, axis).Is(1), extent);
  };
  auto best = std::max_element(axes->begin(), axes->end(),
                               [&](const Axis& x, const Axis& y) { return rank(x) < rank(y); });
  Axis taken = *best;
  axes->erase(best);
  return taken;
}

// Whether the second group should be n rather than the first.
bool SecondIsN(const Workload& workload, const Contraction& c, const Axis& first,
               const Axis& second) {
  const Sizes high = workload.HighestSizes();
  auto rank = [&](const Axis& axis, const ExprPtr& value) {
    bool operand_contiguous = false;
    Walk(*value, [&](const Expr& e) {
      if (e.kind != Expr::Kind::kRead || axis.indices.empty()) return;
      std::optional<Stride> stride = StrideAlong(workload, e.tensor, e.subscripts, axis.lead());
      operand_contiguous |= stride.has_value() && stride->Is(1);
    });
    const int64_t extent = axis.Extent(high);
    return std::make_tuple(extent > 1 && OutputStride(workload, c, axis).Is(1), extent > 1,
                           operand_contiguous, extent);
  };
  return rank(second, c.b.value) >= rank(first, c.a.value);
}

// ---- 5. Describe
// -------------------------------------------------------------------------------------------------

void Describe(const Workload& workload, const Contraction& c, const Fuser& fuser, const Axis& row,
              ContractionOperand* operand) {
  const IndexSet used = IndicesOf(*operand->value);
  for (size_t i = 0; i < c.batch.size(); ++i) {
    for (int index : c.batch[i].indices) {
      if (!used.contains(index)) continue;
      operand->batch.push_back(static_cast<int>(i));
      break;
    }
  }
  int reads = 0;
  bool index_values = false;
  Walk(*operand->value, [&](const Expr& e) {
    index_values |= e.kind == Expr::Kind::kIndexValue;
    if (e.kind != Expr::Kind::kRead) return;
    ++reads;
    operand->read = &e;
  });
  if (reads != 1 || index_values ||
      !StaysInside(workload, operand->read->tensor, operand->read->subscripts)) {
    operand->read = nullptr;
    return;
  }
  const Expr& read = *operand->read;
  auto along = [&](const Axis& axis) {
    return StrideAlong(workload, read.tensor, read.subscripts, axis.lead());
  };
  std::optional<Stride> row_stride = row.indices.empty() ? Stride{} : along(row);
  std::optional<Stride> depth_stride = along(c.k.back());
  bool linear = row_stride.has_value() && depth_stride.has_value();
  for (size_t i = 0; linear && i + 1 < c.k.size(); ++i) {
    std::optional<Stride> outer = along(c.k[i]);
    std::optional<Stride> inner = along(c.k[i + 1]);
    linear =
        outer.has_value() && inner.has_value() && *outer == fuser.TimesExtent(*inner, c.k[i + 1]);
  }
  if (!linear) {
    operand->read = nullptr;
    return;
  }
  operand->linear = true;
  operand->row_stride = *row_stride;
  operand->depth_stride = *depth_stride;
  operand->plain =
      operand->value.get() == operand->read && workload.layout(read.tensor).type == c.accumulator;
}

// Orders the indices of k so that the operand reads neighbours one after the other: the widest
// stride outermost. The order of a sum's indices is free.
void OrderDepth(const Workload& workload, const ContractionOperand& operand, std::vector<Axis>* k) {
  const Expr* read = nullptr;
  Walk(*operand.value, [&](const Expr& e) {
    if (e.kind == Expr::Kind::kRead && read == nullptr) read = &e;
  });
  if (read == nullptr) return;
  const Sizes high = workload.HighestSizes();
  auto stride = [&](const Axis& axis) {
    std::optional<Stride> along =
        StrideAlong(workload, read->tensor, read->subscripts, axis.lead());
    return along.has_value() ? along->Evaluate(high) : 0;
  };
  std::stable_sort(k->begin(), k->end(),
                   [&](const Axis& x, const Axis& y) { return stride(x) > stride(y); });
}

// The one sum of a folded expression, or the reason why there is none.
absl::StatusOr<const Expr*> FindSum(const Program& program, const Statement& statement,
                                    const Expr& value) {
  const Expr* sum = nullptr;
  std::string text;
  absl::Status status;
  Walk(value, [&](const Expr& e) {
    if (e.kind != Expr::Kind::kReduce || !status.ok()) return;
    if (e.reduce != ReduceOp::kSum) {
      status = NoContraction(program, statement, "reduces by max or min, not by a sum");
    } else if (sum == nullptr) {
      sum = &e;
      text = ToString(program, e);
    } else if (ToString(program, e) != text) {
      status = NoContraction(program, statement, "has more than one reduction");
    }
  });
  if (!status.ok()) return status;
  if (sum == nullptr) return NoContraction(program, statement, "has no sum");
  return sum;
}

std::vector<int> InOrder(const std::vector<int>& order, const IndexSet& set) {
  std::vector<int> result;
  for (int index : order) {
    if (set.contains(index)) result.push_back(index);
  }
  return result;
}

}  // namespace

absl::StatusOr<Contraction> MatchContraction(const Workload& workload) {
  const Program& program = workload.program();
  if (workload.outputs().size() != 1) {
    return NoContraction(program, program.statements.back(), "a contraction has one output");
  }
  Contraction c;
  c.output = workload.outputs()[0];
  const Statement* statement = nullptr;
  for (const Statement& s : program.statements) {
    if (s.tensor == c.output) statement = &s;
  }
  absl::StatusOr<ExprPtr> folded = Folder(program).Fold(*statement);
  if (!folded.ok()) return folded.status();
  absl::StatusOr<const Expr*> found = FindSum(program, *statement, **folded);
  if (!found.ok()) return found.status();
  const Expr& sum = **found;
  const Expr& body = *sum.operands[0];

  std::vector<ExprPtr> factors;
  if (body.kind == Expr::Kind::kCall && body.function == Function::kMul) factors = body.operands;
  if (factors.size() < 2 || factors.size() > 12) {
    return NoContraction(program, *statement,
                         "what is summed is not a product of two to twelve factors");
  }
  const IndexSet output(statement->indices.begin(), statement->indices.end());
  for (int index : sum.reduce_indices) {
    if (output.contains(index))
      return NoContraction(program, *statement, "sums over an index of its output");
  }
  std::optional<Split> split = SplitFactors(workload, factors, output);
  if (!split.has_value()) {
    return NoContraction(
        program, *statement,
        "every index of the output belongs to all factors or to none: a sum along rows");
  }

  c.accumulator = ComputeType(workload, body);
  c.a.value = WithoutIdleCasts(Product(split->first), c.accumulator);
  c.b.value = WithoutIdleCasts(Product(split->second), c.accumulator);
  for (int index : statement->indices) {
    AffineTerm term;
    term.index = index;
    c.output_subscripts.push_back(AffineIndex{0, {term}});
  }
  // An integer sum is finished in f64, which holds it exactly, unless it is stored as it is.
  const ElementType output_type = workload.layout(c.output).type;
  c.epilogue = WithoutIdleCasts(*folded, c.accumulator);
  c.plain_epilogue = c.epilogue->kind == Expr::Kind::kReduce;
  c.compute = c.accumulator;
  if (c.accumulator == ElementType::kI32 && !(c.plain_epilogue && !Info(output_type).is_float)) {
    c.compute = ElementType::kF64;
  }
  Walk(*c.epilogue, [&](const Expr& e) {
    if (e.kind == Expr::Kind::kRead && workload.layout(e.tensor).type == ElementType::kF64)
      c.compute = ElementType::kF64;
  });

  const Fuser fuser(workload, c);
  std::vector<Axis> first = fuser.Fuse(InOrder(statement->indices, split->first_only));
  std::vector<Axis> second = fuser.Fuse(InOrder(statement->indices, split->second_only));
  c.k = fuser.Fuse(sum.reduce_indices);
  Axis first_axis = TakeBest(workload, c, &first);
  Axis second_axis = TakeBest(workload, c, &second);
  if (!SecondIsN(workload, c, first_axis, second_axis)) {
    std::swap(c.a, c.b);
    std::swap(first_axis, second_axis);
  }
  OrderDepth(workload, c.b, &c.k);
  c.m = first_axis;
  c.n = second_axis;
  IndexSet rest = output;
  for (const Axis* axis : {&c.m, &c.n}) {
    for (int index : axis->indices) rest.erase(index);
  }
  c.batch = fuser.Fuse(InOrder(statement->indices, rest));
  c.output_row_stride = OutputStride(workload, c, c.m);
  c.output_column_stride = OutputStride(workload, c, c.n);
  Describe(workload, c, fuser, c.m, &c.a);
  Describe(workload, c, fuser, c.n, &c.b);
  return c;
}

}  // namespace tilewright
