#include "tests/schedule/rewriting.h"

#include <algorithm>
#include <map>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "schedule/resolve.h"

namespace tilewright {
namespace {

template <typename T>
void Shuffle(std::vector<T>* items, const Pick& pick) {
  for (size_t i = items->size(); i > 1; --i) {
    std::swap((*items)[i - 1], (*items)[pick(static_cast<int>(i))]);
  }
}

ExprPtr ReorderTree(const Expr& expr, const Pick& pick) {
  Expr copy = expr;
  for (ExprPtr& operand : copy.operands) operand = ReorderTree(*operand, pick);
  for (AffineIndex& subscript : copy.subscripts) Shuffle(&subscript.terms, pick);
  Shuffle(&copy.reduce_indices, pick);
  const bool is_free = expr.kind == Expr::Kind::kCall &&
                       (expr.function == Function::kAdd || expr.function == Function::kMul ||
                        expr.function == Function::kMin || expr.function == Function::kMax);
  if (is_free) Shuffle(&copy.operands, pick);
  return std::make_shared<const Expr>(std::move(copy));
}

}  // namespace

Pick RandomPick(std::mt19937_64& random) {
  return [&random](int n) { return static_cast<int>(random() % n); };
}

Pick ExhaustivePick::pick() {
  at_ = 0;
  return [this](int n) {
    if (at_ == digits_.size()) digits_.emplace_back(0, n);
    return digits_[at_++].first;
  };
}

bool ExhaustivePick::Next() {
  while (!digits_.empty() && digits_.back().first + 1 == digits_.back().second) digits_.pop_back();
  if (digits_.empty()) return false;
  ++digits_.back().first;
  return true;
}

Program Reorder(const Program& program, const Pick& pick) {
  Program result = program;
  // The default output is the last statement's: marked, statements may move.
  result.statements.clear();
  std::vector<bool> is_written(program.tensors.size(), false);
  for (size_t t = 0; t < program.tensors.size(); ++t)
    is_written[t] = program.tensors[t].is_parameter;
  std::vector<const Statement*> left;
  for (const Statement& statement : program.statements) left.push_back(&statement);
  while (!left.empty()) {
    std::vector<size_t> ready;
    for (size_t s = 0; s < left.size(); ++s) {
      bool can_come = true;
      Walk(*left[s]->value, [&](const Expr& expr) {
        if (expr.kind == Expr::Kind::kRead) can_come = can_come && is_written[expr.tensor];
      });
      if (can_come) ready.push_back(s);
    }
    const size_t at = ready[pick(static_cast<int>(ready.size()))];
    Statement copy = *left[at];
    copy.value = ReorderTree(*copy.value, pick);
    is_written[copy.tensor] = true;
    result.statements.push_back(std::move(copy));
    left.erase(left.begin() + at);
  }
  return result;
}

Rewritten Rename(const Program& program, const WorkloadOptions& options, std::mt19937_64& random) {
  const Pick pick = RandomPick(random);
  Program renamed = program;
  std::map<std::string, std::string> names;
  std::vector<int> numbers(program.indices.size() + program.tensors.size());
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int>(i) * 7 + 3;
  Shuffle(&numbers, pick);
  auto fresh = [&](std::string* name) {
    const std::string old = *name;
    *name = absl::StrCat(std::string(1, "qZt_i"[random() % 5]), numbers.back());
    numbers.pop_back();
    names[old] = *name;
  };
  for (std::string& index : renamed.indices) fresh(&index);
  for (Tensor& tensor : renamed.tensors) fresh(&tensor.name);
  auto rewrite = [&](const std::string& list, char end) {
    std::vector<std::string> words;
    for (const ListWord& word : SplitList(list)) {
      const size_t length = std::min(word.text.find_first_of("=.:"), word.text.size());
      const auto name = names.find(std::string(word.text.substr(0, length)));
      words.push_back(name == names.end()
                          ? std::string(word.text)
                          : absl::StrCat(name->second, std::string(word.text.substr(length))));
    }
    Shuffle(&words, pick);
    return absl::StrJoin(words, std::string(1, end));
  };
  return {ToString(renamed), {rewrite(options.sizes, ','), rewrite(options.types, ' ')}};
}

const std::vector<Example>& Examples() {
  static const auto& examples = *new std::vector<Example>{
      {"matmul", "C[m,n] = sum(k: A[m,k] * B[k,n])", {"m=6 n=5 k=7", "f32"}},
      {"matmul_square", "C[m,n] = sum(k: A[m,k] * B[k,n])", {"m=8,n=8,k=8", "bf16"}},
      {"matmul_range", "C[m,n] = sum(k: A[m,k] * B[k,n])", {"m=1..64 n=5 k=7", "f16,C:f32"}},
      {"matmul_strided",
       "C[m,n] = sum(k: A[m,k] * B[k,n])",
       {"m=6 n=5 k=7 A.0.stride=16 B.0.stride=1 B.1.stride=7", "f32"}},
      {"linear",
       "Y[t,o] = gelu(sum(i: X[t,i] * W[o,i]) + bias[o])",
       {"t=6 i=7 o=5", "bf16,bias:f32"}},
      {"softmax",
       "hi[r] = max(c: X[r,c]); z[r] = sum(c: exp(X[r,c] - hi[r])); "
       "Y[r,c] = exp(X[r,c] - hi[r]) / z[r]",
       {"r=4 c=9", "f32"}},
      {"rmsnorm",
       "q[r] = sum(c: X[r,c] * X[r,c]); "
       "Y[r,c] = X[r,c] * rsqrt(q[r] / size(c) + 1e-6) * gain[c]",
       {"r=1..4 c=9", "bf16"}},
      {"layernorm",
       "mean[r] = sum(c: X[r,c]) / size(c); "
       "var[r] = sum(c: (X[r,c] - mean[r]) * (X[r,c] - mean[r])) / size(c); "
       "Y[r,c] = (X[r,c] - mean[r]) * rsqrt(var[r] + 1e-5) * gain[c] + bias[c]",
       {"r=4 c=1..9", "f32"}},
      {"conv2d",
       "Y[n,p,q,o] = sum(r,s,c: X[n, 2*p+r-1, 2*q+s-1, c] * W[o,r,s,c])",
       {"n=2 p=3 q=4 o=2 r=3 s=3 c=2 X.1=6 X.2=8", "f32"}},
      {"attention",
       "S[b,h,i,j] = where(j <= i, sum(d: Q[b,h,i,d] * K[b,h/4,j,d]) * 0.088, -inf); "
       "hi[b,h,i] = max(j: S[b,h,i,j]); "
       "z[b,h,i] = sum(j: exp(S[b,h,i,j] - hi[b,h,i])); "
       "P[b,h,i,j] = cast(bf16, exp(S[b,h,i,j] - hi[b,h,i]) / z[b,h,i]); "
       "O[b,h,i,d] = sum(j: P[b,h,i,j] * V[b,h/4,j,d])",
       {"b=2 h=8 i=6 j=6 d=4 K.1=2 V.1=2", "bf16,S:f32,P:bf16"}},
      {"two_outputs",
       "out m[r] = max(c: X[r,c]); out s[r] = sum(c: X[r,c]); w[] = sum(r: X[r,0]); "
       "out v[r] = min(m[r], s[r], w[], 3) / 2",
       {"r=4 c=9", "f32"}},
      {"quantised", "C[m,n] = sum(k: A[m,k] * B[k,n])", {"m=4 n=5 k=6", "i8,C:i32"}},
      {"conditions",
       "Y[i,j] = where(i%4 == 0 && !(j > 2*i+1 || X[i,j] < 3), j/4*X[i,j]/2 - (i+1)/2.0, "
       "-X[i,j]*tf32(3.1))",
       {"i=8 j=16", "f64"}},
  };
  return examples;
}

namespace {

class RandomWriter {
 public:
  explicit RandomWriter(std::mt19937_64& random) : random_(random) {}

  Example Write() {
    const int statements = 1 + Below(3);
    for (int s = 0; s < statements; ++s) {
      // Every earlier result is read, so that none is unused.
      const std::string value = Value(3);
      const std::string read =
          written_.empty() ? value : absl::StrCat(value, " + ", written_, "[i,j]");
      const std::string name = absl::StrCat("u", s);
      absl::StrAppend(&text_, text_.empty() ? "" : "; ", name, "[i,j] = ", read);
      written_ = name;
    }
    return {"random", text_, {absl::StrCat("i=3 j=", 3 + Below(2), bound_ ? " k=2" : ""), "f32"}};
  }

 private:
  int Below(int n) { return static_cast<int>(random_() % n); }

  std::string Read() {
    static constexpr std::string_view kSubscripts[] = {"i,j", "j,i", "i,i", "j,j"};
    // A tensor keeps one shape: its number decides its subscripts' pattern where shapes would
    // clash.
    const int tensor = Below(4);
    const int pattern = tensor < 2 ? 0 : tensor == 2 ? 1 : 2;
    return absl::StrCat("A", tensor, "[", std::string(kSubscripts[pattern]), "]");
  }
  std::string Value(int depth) {
    if (depth == 0) return Read();
    switch (Below(8)) {
      case 0:
      case 1:
        return absl::StrCat("(", Value(depth - 1), " + ", Value(depth - 1), ")");
      case 2:
      case 3:
        return absl::StrCat("(", Value(depth - 1), " * ", Value(depth - 1), ")");
      case 4:
        return absl::StrCat("(", Value(depth - 1), " - ", Value(depth - 1), ")");
      case 5:
        return absl::StrCat("max(", Value(depth - 1), ", ", Value(depth - 1), ")");
      case 6:
        if (!in_sum_) {
          in_sum_ = bound_ = true;
          const std::string body = Value(depth - 1);
          in_sum_ = false;
          return absl::StrCat("sum(k: B[i,k] * ", body, ")");
        }
        return absl::StrCat("exp(", Value(depth - 1), ")");
      default:
        return absl::StrCat("where(", Below(2) ? "i <= j" : "j < 2*i+1", ", ", Value(depth - 1),
                            " / 3, ", Value(depth - 1), ")");
    }
  }

  std::mt19937_64& random_;
  std::string text_;
  std::string written_;
  bool in_sum_ = false;
  bool bound_ = false;
};

}  // namespace

Example RandomExample(std::mt19937_64& random) { return RandomWriter(random).Write(); }

}  // namespace tilewright
