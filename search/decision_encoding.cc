#include "search/decision_encoding.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/numbers.h"

namespace tilewright {
namespace {

constexpr int kSample = 1024;

// Absent: not a number. true and false are 1 and 0.
std::optional<double> NumberOf(const std::string& token) {
  if (token == "true" || token == "True") return 1;
  if (token == "false" || token == "False") return 0;
  double value = 0;
  if (!absl::SimpleAtod(token, &value) || !std::isfinite(value)) return std::nullopt;
  return value;
}

bool IsWhole(double value) { return value == std::floor(value) && value > 0 && value < 1e15; }

double LogOfOddPart(double value) {
  int64_t whole = static_cast<int64_t>(value);
  while (whole % 2 == 0) whole /= 2;
  return std::log2(static_cast<double>(whole));
}

}  // namespace

DecisionEncoding::DecisionEncoding(const Space* space, uint64_t seed) : space_(*space) {
  std::mt19937_64 random(seed);
  const absl::uint128 count = space_.Count();
  const int sample = count < kSample ? static_cast<int>(absl::Uint128Low64(count)) : kSample;
  std::map<std::string, std::map<std::string, int>> tokens;  // by decision, how often each occurs
  std::map<std::string, int> variants;
  const auto look = [&](absl::uint128 index) {
    const Schedule schedule = space_.At(index);
    ++variants[schedule.variant];
    for (const auto& [name, token] : schedule.decisions) ++tokens[name][token];
  };
  int looked = 0;
  if (count <= kSample) {
    for (; looked < sample; ++looked) look(looked);
  } else {
    // As many of every variant, however few schedules it has.
    const absl::Span<const Space::Part> parts = space_.Parts();
    for (; looked < sample; ++looked) {
      const Space::Part& part = parts[looked % parts.size()];
      look(part.begin + UniformIndex(random, part.end - part.begin));
    }
  }
  if (variants.size() > 1) {
    for (const auto& [variant, occurrences] : variants) variants_[variant] = columns_++;
  }
  for (const auto& [name, counts] : tokens) {
    int present = 0;
    for (const auto& [token, occurrences] : counts) present += occurrences;
    AddAxis(name, counts, present < looked);
  }
}

double DecisionEncoding::ScaledValue(const Axis& axis, double value) {
  switch (axis.scale) {
    case Axis::Scale::kLogarithm:
      return std::log2(std::max(value, 1e-9));
    case Axis::Scale::kLogarithmOfOnePlus:
      return std::log2(1 + std::max(value, 0.0));
    default:
      return value;
  }
}

void DecisionEncoding::AddAxis(const std::string& name, const std::map<std::string, int>& counts,
                               bool may_lack) {
  Axis axis;
  std::vector<double> numbers;
  for (const auto& [token, occurrences] : counts) {
    if (const std::optional<double> number = NumberOf(token)) numbers.push_back(*number);
  }
  if (counts.size() < 2 && !may_lack) return;  // says nothing
  if (numbers.size() < counts.size()) {
    axis.scale = Axis::Scale::kLabels;
    for (const auto& [token, occurrences] : counts) {
      if (counts.size() == 2 && !axis.labels.empty()) break;  // the other of two is its absence
      axis.labels[token] = columns_++;
    }
  } else {
    const auto [least, most] = std::minmax_element(numbers.begin(), numbers.end());
    axis.scale = *least > 0    ? Axis::Scale::kLogarithm
                 : *least == 0 ? Axis::Scale::kLogarithmOfOnePlus
                               : Axis::Scale::kLinear;
    axis.column = columns_++;
    axis.least = ScaledValue(axis, *least);
    axis.range = std::max(1e-9, ScaledValue(axis, *most) - axis.least);
    double most_odd = 0;
    if (numbers.size() > 2 && std::all_of(numbers.begin(), numbers.end(), IsWhole)) {
      for (double number : numbers) most_odd = std::max(most_odd, LogOfOddPart(number));
    }
    axis.has_odd_part = most_odd > 0;
    if (axis.has_odd_part) {
      axis.odd_range = most_odd;
      ++columns_;
    }
  }
  if (may_lack) axis.absent_column = columns_++;
  axes_.emplace(name, std::move(axis));
}

std::vector<float> DecisionEncoding::Encode(const Schedule& schedule) const {
  std::vector<float> row(columns_, 0);
  if (const auto variant = variants_.find(schedule.variant); variant != variants_.end())
    row[variant->second] = 1;
  for (const auto& [name, axis] : axes_) {
    const std::string* token = schedule.Find(name);
    if (token == nullptr) {
      if (axis.scale != Axis::Scale::kLabels) row[axis.column] = 0.5;
      if (axis.absent_column >= 0) row[axis.absent_column] = 1;
      continue;
    }
    if (axis.scale == Axis::Scale::kLabels) {
      if (const auto label = axis.labels.find(*token); label != axis.labels.end())
        row[label->second] = 1;
      continue;
    }
    const double value = NumberOf(*token).value_or(0);
    row[axis.column] = static_cast<float>((ScaledValue(axis, value) - axis.least) / axis.range);
    if (axis.has_odd_part && IsWhole(value))
      row[axis.column + 1] = static_cast<float>(LogOfOddPart(value) / axis.odd_range);
  }
  return row;
}

const std::vector<float>& DecisionEncoding::Row(absl::uint128 index) {
  // Far more schedules are looked at than measured; what was seen long ago is rarely seen again.
  if (rows_.size() > 200000) rows_.clear();
  const auto [found, fresh] = rows_.try_emplace(index);
  if (fresh) found->second = Encode(space_.At(index));
  return found->second;
}

DenseMatrix DecisionEncoding::Rows(absl::Span<const absl::uint128> indices) {
  DenseMatrix matrix;
  matrix.columns = columns_;
  matrix.values.reserve(indices.size() * columns_);
  for (absl::uint128 index : indices) {
    const std::vector<float>& row = Row(index);
    matrix.values.insert(matrix.values.end(), row.begin(), row.end());
  }
  return matrix;
}

}  // namespace tilewright
