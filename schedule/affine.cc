#include "schedule/affine.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

namespace tilewright {
namespace {

int64_t FloorDiv(int64_t a, int64_t divisor) { return a / divisor - (a % divisor < 0 ? 1 : 0); }
int64_t FloorMod(int64_t a, int64_t divisor) { return a - FloorDiv(a, divisor) * divisor; }

bool SameAtom(const AffineTerm& a, const AffineTerm& b) {
  if (a.kind != b.kind) return false;
  if (a.kind == AffineTerm::Kind::kIndex) return a.index == b.index;
  return a.divisor == b.divisor && *a.operand == *b.operand;
}

bool WithinLimit(__int128 x) { return x >= -kMaxAffineNumber && x <= kMaxAffineNumber; }

}  // namespace

bool operator==(const AffineTerm& a, const AffineTerm& b) {
  return a.coefficient == b.coefficient && SameAtom(a, b);
}

bool operator==(const AffineIndex& a, const AffineIndex& b) {
  return a.constant == b.constant && a.terms == b.terms;
}

int AffineIndex::BareIndex() const {
  if (constant != 0 || terms.size() != 1) return -1;
  const AffineTerm& term = terms[0];
  return term.kind == AffineTerm::Kind::kIndex && term.coefficient == 1 ? term.index : -1;
}

int64_t AffineIndex::Evaluate(absl::Span<const int64_t> indices) const {
  int64_t value = constant;
  for (const AffineTerm& term : terms) {
    switch (term.kind) {
      case AffineTerm::Kind::kIndex:
        value += term.coefficient * indices[term.index];
        break;
      case AffineTerm::Kind::kFloorDiv:
        value += term.coefficient * FloorDiv(term.operand->Evaluate(indices), term.divisor);
        break;
      case AffineTerm::Kind::kFloorMod:
        value += term.coefficient * FloorMod(term.operand->Evaluate(indices), term.divisor);
        break;
    }
  }
  return value;
}

void AffineIndex::CollectIndices(std::vector<int>* out) const {
  for (const AffineTerm& term : terms) {
    if (term.kind != AffineTerm::Kind::kIndex) {
      term.operand->CollectIndices(out);
    } else if (std::find(out->begin(), out->end(), term.index) == out->end()) {
      out->push_back(term.index);
    }
  }
}

AffineIndex AffineOfIndex(int index) {
  AffineIndex affine;
  AffineTerm term;
  term.index = index;
  affine.terms.push_back(std::move(term));
  return affine;
}

AffineIndex AffineOfDivision(AffineTerm::Kind kind, AffineIndex operand, int64_t divisor) {
  AffineIndex affine;
  if (operand.terms.empty()) {
    affine.constant = kind == AffineTerm::Kind::kFloorDiv ? FloorDiv(operand.constant, divisor)
                                                          : FloorMod(operand.constant, divisor);
    return affine;
  }
  AffineTerm term;
  term.kind = kind;
  term.operand = std::make_shared<const AffineIndex>(std::move(operand));
  term.divisor = divisor;
  affine.terms.push_back(std::move(term));
  return affine;
}

bool AddScaled(const AffineIndex& other, int64_t factor, AffineIndex* affine) {
  const __int128 constant = static_cast<__int128>(other.constant) * factor + affine->constant;
  if (!WithinLimit(constant)) return false;
  affine->constant = static_cast<int64_t>(constant);
  for (const AffineTerm& term : other.terms) {
    auto same = std::find_if(affine->terms.begin(), affine->terms.end(),
                             [&](const AffineTerm& t) { return SameAtom(t, term); });
    __int128 coefficient = static_cast<__int128>(term.coefficient) * factor;
    if (same != affine->terms.end()) coefficient += same->coefficient;
    if (!WithinLimit(coefficient)) return false;
    if (same == affine->terms.end()) {
      affine->terms.push_back(term);
      same = affine->terms.end() - 1;
    }
    same->coefficient = static_cast<int64_t>(coefficient);
    if (coefficient == 0) affine->terms.erase(same);
  }
  return true;
}

std::optional<AffineIndex> ToAffine(const Expr& expr) {
  AffineIndex result;
  if (expr.kind == Expr::Kind::kConstant) {
    if (!(std::abs(expr.constant) <= static_cast<double>(kMaxAffineNumber)) ||
        expr.constant != std::nearbyint(expr.constant)) {
      return std::nullopt;
    }
    result.constant = static_cast<int64_t>(expr.constant);
    return result;
  }
  if (expr.kind == Expr::Kind::kIndexValue) return expr.index_value;
  if (expr.kind != Expr::Kind::kCall) return std::nullopt;
  switch (expr.function) {
    case Function::kAdd:
    case Function::kNeg:
      for (const ExprPtr& operand : expr.operands) {
        const std::optional<AffineIndex> part = ToAffine(*operand);
        const int64_t factor = expr.function == Function::kNeg ? -1 : 1;
        if (!part.has_value() || !AddScaled(*part, factor, &result)) return std::nullopt;
      }
      return result;
    case Function::kMul: {
      result.constant = 1;
      for (const ExprPtr& operand : expr.operands) {
        const std::optional<AffineIndex> part = ToAffine(*operand);
        if (!part.has_value()) return std::nullopt;
        if (!result.terms.empty() && !part->terms.empty()) return std::nullopt;
        AffineIndex product;
        const bool fits = part->terms.empty() ? AddScaled(result, part->constant, &product)
                                              : AddScaled(*part, result.constant, &product);
        if (!fits) return std::nullopt;
        result = std::move(product);
      }
      return result;
    }
    default:
      return std::nullopt;
  }
}

std::optional<IndexInterval> Bounds(const AffineIndex& affine,
                                    absl::Span<const IndexInterval> indices) {
  constexpr __int128 kLimit = static_cast<__int128>(1) << 60;
  __int128 low = affine.constant;
  __int128 high = affine.constant;
  for (const AffineTerm& term : affine.terms) {
    IndexInterval atom;
    if (term.kind == AffineTerm::Kind::kIndex) {
      atom = indices[term.index];
    } else {
      const std::optional<IndexInterval> operand = Bounds(*term.operand, indices);
      if (!operand.has_value()) return std::nullopt;
      const int64_t first = FloorDiv(operand->low, term.divisor);
      const int64_t last = FloorDiv(operand->high, term.divisor);
      if (term.kind == AffineTerm::Kind::kFloorDiv) {
        atom = {first, last};
      } else if (first == last) {
        atom = {FloorMod(operand->low, term.divisor), FloorMod(operand->high, term.divisor)};
      } else {
        atom = {0, term.divisor - 1};
      }
    }
    const __int128 a = static_cast<__int128>(term.coefficient) * atom.low;
    const __int128 b = static_cast<__int128>(term.coefficient) * atom.high;
    low += std::min(a, b);
    high += std::max(a, b);
    if (low < -kLimit || high > kLimit || a > kLimit || b > kLimit || a < -kLimit || b < -kLimit) {
      return std::nullopt;
    }
  }
  return IndexInterval{static_cast<int64_t>(low), static_cast<int64_t>(high)};
}

AffineIndex Renumber(const AffineIndex& affine, absl::Span<const int> numbers) {
  AffineIndex result = affine;
  for (AffineTerm& term : result.terms) {
    if (term.kind == AffineTerm::Kind::kIndex) {
      term.index = numbers[term.index];
    } else {
      term.operand = std::make_shared<const AffineIndex>(Renumber(*term.operand, numbers));
    }
  }
  return result;
}

}  // namespace tilewright
