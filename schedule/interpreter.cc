#include "schedule/interpreter.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tilewright {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Intermediates up to this many elements are kept in an array, larger ones in a hash table.
constexpr int64_t kMostDenseElements = int64_t{1} << 22;

// The values of one intermediate that are known so far.
class Memo {
 public:
  void Resize(int64_t elements) { elements_ = elements; }
  const double* Find(int64_t at) {
    if (elements_ > kMostDenseElements) {
      const auto found = sparse_.find(at);
      return found == sparse_.end() ? nullptr : &found->second;
    }
    if (dense_.empty()) {
      dense_.resize(elements_);
      is_known_.resize(elements_, false);
    }
    return is_known_[at] ? &dense_[at] : nullptr;
  }
  void Keep(int64_t at, double value) {
    if (elements_ > kMostDenseElements) {
      sparse_[at] = value;
    } else {
      dense_[at] = value;
      is_known_[at] = true;
    }
  }

 private:
  int64_t elements_ = 0;
  std::vector<double> dense_;
  std::vector<bool> is_known_;
  absl::flat_hash_map<int64_t, double> sparse_;
};

// NaN if either is NaN, as IEEE 754-2019 maximum and minimum.
double Larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }
double Smaller(double a, double b) { return std::isnan(a) || a < b ? a : b; }

struct TensorState {
  ElementType type = ElementType::kF32;
  std::vector<int64_t> shape;
  const char* data = nullptr;  // parameters
  std::vector<int64_t> byte_strides;
  const Statement* statement = nullptr;  // the others
  std::vector<int> bound;                // indices that evaluating the statement assigns
  Memo memo;
};

// An expression prepared for many evaluations.
struct Node {
  const Expr* expr = nullptr;
  bool in_sum = false;  // somewhere inside `sum`: reads outside a tensor are 0
  std::vector<Node> operands;
  TensorState* tensor = nullptr;  // of a read
  // A read of a parameter whose subscripts are all indices alone can't leave the tensor: its
  // address is a sum of index * byte stride.
  bool is_direct = false;
  std::vector<std::pair<int, int64_t>> direct_terms;
};

class TreeInterpreter : public Interpreter {
 public:
  TreeInterpreter(const Workload& workload, Sizes sizes, const std::vector<const void*>& inputs)
      : workload_(workload), sizes_(std::move(sizes)), values_(sizes_.size(), 0) {
    const int n = static_cast<int>(workload.program().tensors.size());
    tensors_.resize(n);
    roots_.resize(n);
    for (int t = 0; t < n; ++t) {
      tensors_[t].shape = workload.Shape(t, sizes_);
      int64_t elements = 1;
      for (int64_t size : tensors_[t].shape) elements *= size;
      tensors_[t].memo.Resize(elements);
      tensors_[t].type = workload.layout(t).type;
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      TensorState& state = tensors_[workload.parameters()[i]];
      state.data = static_cast<const char*>(inputs[i]);
      state.byte_strides = workload.Strides(workload.parameters()[i], sizes_);
      for (int64_t& stride : state.byte_strides) stride *= Info(state.type).bytes;
    }
    for (const Statement& statement : workload.program().statements) {
      TensorState& state = tensors_[statement.tensor];
      state.statement = &statement;
      state.bound = statement.indices;
      Walk(*statement.value, [&](const Expr& expr) {
        state.bound.insert(state.bound.end(), expr.reduce_indices.begin(),
                           expr.reduce_indices.end());
      });
      roots_[statement.tensor] = Prepare(*statement.value, false);
    }
  }

  absl::StatusOr<double> Evaluate(int tensor, absl::Span<const int64_t> point) override {
    if (tensor < 0 || tensor >= static_cast<int>(tensors_.size())) {
      return absl::OutOfRangeError(absl::StrCat("there is no tensor ", tensor));
    }
    const TensorState& state = tensors_[tensor];
    bool is_inside = point.size() == state.shape.size();
    for (size_t d = 0; is_inside && d < point.size(); ++d) {
      is_inside = point[d] >= 0 && point[d] < state.shape[d];
    }
    if (!is_inside) {
      return absl::OutOfRangeError(
          absl::StrCat("point [", absl::StrJoin(point, ","), "] is outside tensor '", Name(tensor),
                       "' of shape [", absl::StrJoin(state.shape, ","), "]"));
    }
    has_failed_ = false;
    const double value = ValueAt(tensor, point);
    if (has_failed_) return status_;
    return value;
  }

 private:
  const std::string& Name(int tensor) const { return workload_.program().tensors[tensor].name; }

  Node Prepare(const Expr& expr, bool in_sum) {
    Node node;
    node.expr = &expr;
    if (expr.kind == Expr::Kind::kReduce && expr.reduce == ReduceOp::kSum) in_sum = true;
    node.in_sum = in_sum;
    for (const ExprPtr& operand : expr.operands) node.operands.push_back(Prepare(*operand, in_sum));
    if (expr.kind != Expr::Kind::kRead) return node;
    node.tensor = &tensors_[expr.tensor];
    node.is_direct = node.tensor->data != nullptr;
    for (size_t d = 0; d < expr.subscripts.size() && node.is_direct; ++d) {
      const int index = expr.subscripts[d].BareIndex();
      node.is_direct = index >= 0;
      node.direct_terms.emplace_back(index, node.tensor->byte_strides[d]);
    }
    return node;
  }

  // Precondition: the point is inside.
  double ValueAt(int tensor, absl::Span<const int64_t> point) {
    TensorState& state = tensors_[tensor];
    if (state.data != nullptr) {
      const char* address = state.data;
      for (size_t d = 0; d < point.size(); ++d) address += point[d] * state.byte_strides[d];
      return LoadElement(state.type, address);
    }
    int64_t at = 0;
    for (size_t d = 0; d < point.size(); ++d) at = at * state.shape[d] + point[d];
    if (const double* known = state.memo.Find(at)) return *known;
    // The statement assigns indices that the reading statement may be using.
    absl::InlinedVector<int64_t, 16> saved;
    for (int index : state.bound) saved.push_back(values_[index]);
    for (size_t d = 0; d < point.size(); ++d) values_[state.statement->indices[d]] = point[d];
    const double value = Eval(roots_[tensor]);
    for (size_t i = state.bound.size(); i-- > 0;) values_[state.bound[i]] = saved[i];
    if (!has_failed_) state.memo.Keep(at, value);
    return value;
  }

  double Read(const Node& node) {
    const TensorState& state = *node.tensor;
    if (node.is_direct) {
      const char* address = state.data;
      for (const auto& [index, stride] : node.direct_terms) address += values_[index] * stride;
      return LoadElement(state.type, address);
    }
    const Expr& read = *node.expr;
    absl::InlinedVector<int64_t, 8> point(read.subscripts.size());
    for (size_t d = 0; d < point.size(); ++d) {
      point[d] = read.subscripts[d].Evaluate(values_);
      if (point[d] >= 0 && point[d] < state.shape[d]) continue;
      if (!node.in_sum && !has_failed_) {
        has_failed_ = true;
        status_ = absl::OutOfRangeError(absl::StrCat(
            "subscript ", d, " of '", Name(read.tensor), "' is ", point[d], ", outside 0..",
            state.shape[d] - 1, "; only inside sum such a read is 0"));
      }
      return 0;
    }
    return ValueAt(read.tensor, point);
  }

  double Reduce(const Node& node) {
    const Expr& reduce = *node.expr;
    const Node& body = node.operands[0];
    for (int index : reduce.reduce_indices) values_[index] = 0;
    double result = reduce.reduce == ReduceOp::kSum   ? 0
                    : reduce.reduce == ReduceOp::kMax ? -kInfinity
                                                      : kInfinity;
    while (!has_failed_) {
      const double value = Eval(body);
      switch (reduce.reduce) {
        case ReduceOp::kSum:
          result += value;
          break;
        case ReduceOp::kMax:
          result = Larger(result, value);
          break;
        case ReduceOp::kMin:
          result = Smaller(result, value);
          break;
      }
      // The next point of the reduction, the last index fastest.
      size_t i = reduce.reduce_indices.size();
      while (i > 0) {
        const int index = reduce.reduce_indices[i - 1];
        if (++values_[index] < sizes_[index]) break;
        values_[index] = 0;
        --i;
      }
      if (i == 0) break;
    }
    return result;
  }

  double Call(const Node& node) {
    const std::vector<Node>& operands = node.operands;
    const double first = Eval(operands[0]);
    auto operand = [&](size_t i) { return Eval(operands[i]); };
    double result = first;
    switch (node.expr->function) {
      case Function::kAdd:
        for (size_t i = 1; i < operands.size(); ++i) result += operand(i);
        return result;
      case Function::kMul:
        for (size_t i = 1; i < operands.size(); ++i) result *= operand(i);
        return result;
      case Function::kMin:
        for (size_t i = 1; i < operands.size(); ++i) result = Smaller(result, operand(i));
        return result;
      case Function::kMax:
        for (size_t i = 1; i < operands.size(); ++i) result = Larger(result, operand(i));
        return result;
      case Function::kDiv:
        return first / operand(1);
      case Function::kWhere:
        return operand(first != 0 ? 1 : 2);  // The other side is not evaluated.
      case Function::kCast:
        return RoundTo(node.expr->cast_type, first);
      case Function::kTf32:
        return RoundToTf32(first);
      case Function::kLess:
        return first < operand(1);
      case Function::kLessEqual:
        return first <= operand(1);
      case Function::kEqual:
        return first == operand(1);
      case Function::kNotEqual:
        return first != operand(1);
      case Function::kAnd:
        return first != 0 && operand(1) != 0;
      case Function::kOr:
        return first != 0 || operand(1) != 0;
      case Function::kNot:
        return first == 0;
      default:
        return EvaluateUnary(node.expr->function, first);
    }
  }

  double Eval(const Node& node) {
    switch (node.expr->kind) {
      case Expr::Kind::kConstant:
        return node.expr->constant;
      case Expr::Kind::kRead:
        return Read(node);
      case Expr::Kind::kIndexValue:
        return static_cast<double>(node.expr->index_value.Evaluate(values_));
      case Expr::Kind::kSize:
        return static_cast<double>(sizes_[node.expr->index]);
      case Expr::Kind::kCall:
        return Call(node);
      case Expr::Kind::kReduce:
        return Reduce(node);
    }
    __builtin_unreachable();  // The cases above are all enumerators.
  }

  const Workload& workload_;
  Sizes sizes_;
  std::vector<int64_t> values_;  // of the indices
  std::vector<TensorState> tensors_;
  std::vector<Node> roots_;  // by tensor: its statement's value
  bool has_failed_ = false;  // then status_ says why
  absl::Status status_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Interpreter>> Interpreter::Make(const Workload& workload,
                                                               Sizes sizes,
                                                               std::vector<const void*> inputs) {
  const absl::Status status = workload.CheckSizes(sizes);
  if (!status.ok()) return absl::InvalidArgumentError(status.message());
  if (inputs.size() != workload.parameters().size()) {
    return absl::InvalidArgumentError(absl::StrCat(inputs.size(), " inputs for a workload of ",
                                                   workload.parameters().size(), " parameters"));
  }
  return std::make_unique<TreeInterpreter>(workload, std::move(sizes), inputs);
}

}  // namespace tilewright
