#include "schedule/match_row_reduction.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "schedule/compute_type.h"
#include "schedule/match.h"
#include "schedule/match_pointwise.h"

namespace tilewright {
namespace {

using IndexSet = std::set<int>;

IndexSet IndicesOf(const Expr& expr) {
  std::vector<int> found;
  Walk(expr, [&](const Expr& e) {
    for (const AffineIndex& subscript : e.subscripts) subscript.CollectIndices(&found);
    e.index_value.CollectIndices(&found);
  });
  return IndexSet(found.begin(), found.end());
}

bool HasOwn(const IndexSet& a, const IndexSet& b, const IndexSet& among) {
  return std::any_of(a.begin(), a.end(),
                     [&](int index) { return among.contains(index) && !b.contains(index); });
}

// A sum of products in which two factors each have an output index that the other lacks: a matrix
// product.
bool IsMatrixProduct(const Expr& reduce, const IndexSet& output) {
  const Expr& body = *reduce.operands[0];
  if (reduce.reduce != ReduceOp::kSum || body.kind != Expr::Kind::kCall ||
      body.function != Function::kMul)
    return false;
  for (const ExprPtr& a : body.operands) {
    for (const ExprPtr& b : body.operands) {
      const IndexSet of_a = IndicesOf(*a);
      const IndexSet of_b = IndicesOf(*b);
      if (HasOwn(of_a, of_b, output) && HasOwn(of_b, of_a, output)) return true;
    }
  }
  return false;
}

bool IsCostly(Function function) {
  switch (function) {
    case Function::kExp:
    case Function::kLog:
    case Function::kTanh:
    case Function::kErf:
    case Function::kSigmoid:
    case Function::kGelu:
    case Function::kSilu:
      return true;
    default:
      return false;
  }
}

// As many parts as the text of one statement can have (32768 bytes); a kernel with more would take
// minutes to compile.
constexpr int kMostParts = 20000;

// Describes how one pass over the rows writes the program, or says why it can't.
class Fuser {
 public:
  Fuser(const Workload& workload, RowReduction* result)
      : workload_(workload), program_(workload.program()), result_(*result) {}

  void Run() {
    FindColumns();
    if (result_.not_fusable.empty()) FindRows();
    if (result_.not_fusable.empty()) CheckReads();
    if (result_.not_fusable.empty()) CheckParts();
    if (!result_.not_fusable.empty()) return;
    OrderIndices();
    FindKept();
  }

 private:
  void Refuse(const Statement& statement, absl::string_view reason) {
    if (!result_.not_fusable.empty()) return;
    result_.not_fusable = absl::StrCat(program_.tensors[statement.tensor].name, " = ",
                                       ToString(program_, *statement.value), ": ", reason);
  }

  void FindColumns() {
    for (const Statement& statement : program_.statements) {
      Walk(*statement.value, [&](const Expr& e) {
        if (e.kind != Expr::Kind::kReduce) return;
        ++result_.passes;
        const IndexSet columns(e.reduce_indices.begin(), e.reduce_indices.end());
        if (columns_.empty()) columns_ = columns;
        if (columns != columns_)
          Refuse(statement, "reduces over other indices than the first reduction");
        Walk(*e.operands[0], [&](const Expr& inner) {
          if (inner.kind == Expr::Kind::kReduce)
            Refuse(statement, "has a reduction inside a reduction");
        });
        for (int index : statement.indices) {
          if (columns_.contains(index))
            Refuse(statement, "reduces inside a statement that has the reduced index");
        }
      });
    }
  }

  // Rows are the indices of the statements that reduce; every other statement has these, or these
  // and the columns.
  void FindRows() {
    bool found = false;
    for (const Statement& statement : program_.statements) {
      IndexSet rows;
      IndexSet columns;
      for (int index : statement.indices) (columns_.contains(index) ? columns : rows).insert(index);
      if (!found) {
        rows_ = rows;
        found = true;
      }
      if (rows != rows_) Refuse(statement, "has other rows than the first statement");
      if (!columns.empty() && columns != columns_)
        Refuse(statement, "has some of the columns, not all or none");
      if (!columns.empty() && program_.tensors[statement.tensor].is_output) ++result_.passes;
    }
  }

  // What statements write is read back in the same row and column only.
  void CheckReads() {
    for (const Statement& statement : program_.statements) {
      Walk(*statement.value, [&](const Expr& e) {
        if (e.kind != Expr::Kind::kRead) return;
        const Statement* source = FindWriterOf(program_, e.tensor);
        if (source == nullptr) return;
        for (size_t d = 0; d < e.subscripts.size(); ++d) {
          if (e.subscripts[d].BareIndex() != source->indices[d]) {
            Refuse(statement, "reads an intermediate at another row or column");
          }
        }
      });
    }
  }

  // A pass computes what is read per element again at each read.
  void CheckParts() {
    std::map<int, double> known;
    for (const Statement& statement : program_.statements) {
      if (Parts(*statement.value, &known) > kMostParts) {
        Refuse(statement,
               absl::StrCat("with its intermediate tensors written out it has more than ",
                            kMostParts, " parts"));
      }
    }
  }

  // The parts of `expr` with intermediates per element written out. `known`: those of
  // intermediates.
  double Parts(const Expr& expr, std::map<int, double>* known) const {
    double parts = 1;
    if (expr.kind == Expr::Kind::kRead) {
      const Statement* source = FindWriterOf(program_, expr.tensor);
      if (source == nullptr || !PerElement(expr)) return parts;
      const auto found = known->find(expr.tensor);
      if (found != known->end()) return found->second;
      parts += Parts(*source->value, known);
      known->emplace(expr.tensor, parts);
      return parts;
    }
    for (const ExprPtr& operand : expr.operands) parts += Parts(*operand, known);
    return parts;
  }

  // How many reads of parameters lie next to each other along `index`.
  int AdjacentReads(int index) const {
    int count = 0;
    for (const Statement& statement : program_.statements) {
      Walk(*statement.value, [&](const Expr& e) {
        if (e.kind != Expr::Kind::kRead || FindWriterOf(program_, e.tensor) != nullptr) return;
        if (FixedStride(workload_, e.tensor, e.subscripts, index) == 1) ++count;
      });
    }
    return count;
  }

  void OrderIndices() {
    for (const Statement& statement : program_.statements) {
      if (!result_.rows.empty()) break;
      for (int index : statement.indices) {
        if (rows_.contains(index)) result_.rows.push_back(index);
      }
    }
    result_.columns.assign(columns_.begin(), columns_.end());
    auto closest_last = [&](std::vector<int>* indices) {
      auto best = indices->begin();
      for (auto i = indices->begin(); i != indices->end(); ++i) {
        if (AdjacentReads(*i) >= AdjacentReads(*best)) best = i;
      }
      std::rotate(best, best + 1, indices->end());
      return AdjacentReads(indices->back());
    };
    const int along_columns = closest_last(&result_.columns);
    if (result_.rows.empty()) return;
    std::vector<int> rows = result_.rows;
    if (closest_last(&rows) > along_columns) {
      result_.rows = rows;
      result_.lanes_along_columns = false;
    }
  }

  // Subexpressions per element of a row that have a costly function, by text, with the number of
  // passes that compute them.
  void FindKept() {
    for (const Statement& statement : program_.statements) {
      bool is_pass = program_.tensors[statement.tensor].is_output;
      Walk(*statement.value, [&](const Expr& e) { is_pass |= e.kind == Expr::Kind::kReduce; });
      Pass pass;
      if (is_pass) CollectCostly(*statement.value, &pass);
    }
    for (const auto& [text, entry] : costly_) {
      if (entry.second < 2 || text.size() <= result_.kept_text.size()) continue;
      result_.kept_text = text;
      result_.kept = entry.first;
    }
  }

  // What one pass was found to compute.
  struct Pass {
    std::set<std::string> costly;
    IndexSet intermediates;
  };

  // Reads of intermediates per element stand for what computes them, once for each pass.
  void CollectCostly(const Expr& expr, Pass* pass) {
    if (expr.kind == Expr::Kind::kRead) {
      const Statement* source = FindWriterOf(program_, expr.tensor);
      if (source != nullptr && PerElement(expr) && pass->intermediates.insert(expr.tensor).second)
        CollectCostly(*source->value, pass);
      return;
    }
    if (expr.kind == Expr::Kind::kCall && PerElement(expr)) {
      bool costly = false;
      bool reduces = false;
      Walk(expr, [&](const Expr& inner) {
        costly |= inner.kind == Expr::Kind::kCall && IsCostly(inner.function);
        reduces |= inner.kind == Expr::Kind::kReduce;
      });
      const std::string text = ToString(program_, expr);
      if (costly && !reduces && pass->costly.insert(text).second) {
        auto& entry = costly_[text];
        if (entry.first == nullptr) entry.first = &expr;
        ++entry.second;
      }
    }
    for (const ExprPtr& operand : expr.operands) CollectCostly(*operand, pass);
  }

  bool PerElement(const Expr& expr) const {
    const IndexSet indices = IndicesOf(expr);
    return std::all_of(columns_.begin(), columns_.end(),
                       [&](int index) { return indices.contains(index); });
  }

  const Workload& workload_;
  const Program& program_;
  RowReduction& result_;
  IndexSet rows_;
  IndexSet columns_;
  std::map<std::string, std::pair<const Expr*, int>> costly_;
};

}  // namespace

absl::StatusOr<RowReduction> MatchRowReduction(const Workload& workload) {
  const Program& program = workload.program();
  bool reduces = false;
  for (const Statement& statement : program.statements) {
    const IndexSet output(statement.indices.begin(), statement.indices.end());
    std::string reason;
    Walk(*statement.value, [&](const Expr& e) {
      if (e.kind != Expr::Kind::kReduce) return;
      reduces = true;
      if (IsMatrixProduct(e, output))
        reason = "sums a product of two tensors with different rows: a contraction";
    });
    if (reason.empty()) continue;
    return absl::FailedPreconditionError(absl::StrCat(program.tensors[statement.tensor].name, " = ",
                                                      ToString(program, *statement.value), ": ",
                                                      reason));
  }
  if (!reduces) return absl::FailedPreconditionError("no statement has a reduction");
  if (MatchContraction(workload).ok()) {
    return absl::FailedPreconditionError("the program is a contraction (a matrix times a vector)");
  }
  RowReduction result;
  Fuser(workload, &result).Run();
  return result;
}

}  // namespace tilewright
