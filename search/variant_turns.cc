#include "search/variant_turns.h"

#include <algorithm>
#include <cmath>

namespace tilewright {
namespace {

constexpr double kHopelessBound = 16;
constexpr double kHopelessResult = 4;

}  // namespace

VariantTurns::VariantTurns(absl::Span<const Space::Part> parts, absl::Span<const double> bounds) {
  const double least = *std::min_element(bounds.begin(), bounds.end());
  for (size_t p = 0; p < parts.size(); ++p) {
    if (std::isfinite(bounds[p]) && bounds[p] > kHopelessBound * least) continue;
    const double count = static_cast<double>(parts[p].end - parts[p].begin);
    variants_.push_back({.part = parts[p], .share = std::log2(1 + count)});
  }
}

void VariantTurns::Observe(const Observation& observation) {
  if (!observation.ok) return;
  const auto better = [&](double best) { return best == kUnmeasured || observation.cost < best; };
  if (better(best_)) best_ = observation.cost;
  for (Variant& variant : variants_) {
    const bool its =
        observation.index >= variant.part.begin && observation.index < variant.part.end;
    if (its && better(variant.best)) variant.best = observation.cost;
  }
}

bool VariantTurns::MayDraw(const Variant& variant) const {
  return variant.best == kUnmeasured || variant.best <= kHopelessResult * best_;
}

// Smooth weighted round robin: everyone is paid its share, the richest has the turn and pays for
// all, so that turns are as evenly spread as the shares allow.
const Space::Part* VariantTurns::Next() {
  double total = 0;
  Variant* richest = nullptr;
  for (Variant& variant : variants_) {
    if (!MayDraw(variant)) continue;
    variant.credit += variant.share;
    total += variant.share;
    if (richest == nullptr || variant.credit > richest->credit) richest = &variant;
  }
  if (richest == nullptr) return nullptr;
  richest->credit -= total;
  last_ = richest - variants_.data();
  return &richest->part;
}

void VariantTurns::RemoveLast() { variants_.erase(variants_.begin() + last_); }

}  // namespace tilewright
