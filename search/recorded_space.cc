#include "search/recorded_space.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "measure/statistics.h"

namespace tilewright {
namespace {

// Numbers, and true and false in the spelling of the files.
std::optional<double> RecordedNumber(const std::string& token) {
  if (token == "False" || token == "false") return 0;
  if (token == "True" || token == "true") return 1;
  double number = 0;
  if (!absl::SimpleAtod(token, &number) || !std::isfinite(number)) return std::nullopt;
  return number;
}

RecordedDecision MakeDecision(std::string name, const std::set<std::string>& tokens) {
  RecordedDecision decision{.name = std::move(name)};
  std::vector<std::pair<double, std::string>> numbers;
  for (const std::string& token : tokens) {
    if (const std::optional<double> number = RecordedNumber(token)) {
      numbers.emplace_back(*number, token);
    }
  }
  if (numbers.size() < tokens.size()) {
    for (const std::string& token : tokens) {
      decision.numbers.push_back(static_cast<double>(decision.tokens.size()));
      decision.tokens.push_back(token);
    }
    return decision;
  }
  std::sort(numbers.begin(), numbers.end());
  for (auto& [number, token] : numbers) {
    decision.numbers.push_back(number);
    decision.tokens.push_back(std::move(token));
  }
  return decision;
}

double StandardDeviationOfLog(absl::Span<const double> times) {
  double sum = 0;
  double squares = 0;
  for (double time : times) {
    sum += std::log(time);
    squares += std::log(time) * std::log(time);
  }
  const double n = static_cast<double>(times.size());
  return std::sqrt(std::max(0.0, (squares - sum * sum / n) / (n - 1)));
}

constexpr double kMostNoise = 0.05;
constexpr size_t kFewestToJudge = 20;
// Each shape has a table of what every configuration of the others comes to in it: some seconds and
// a gigabyte.
constexpr int64_t kMostChangesOfShape = 10'000'000;

}  // namespace

absl::StatusOr<std::unique_ptr<RecordedSpace>> RecordedSpace::Make(
    std::vector<RecordedConfiguration> configurations) {
  if (configurations.empty()) return absl::InvalidArgumentError("no configuration is recorded");
  auto space = std::unique_ptr<RecordedSpace>(new RecordedSpace);
  space->configurations_ = std::move(configurations);
  space->CollectDecisions();
  if (absl::Status sorted = space->Sort(); !sorted.ok()) return sorted;
  if (absl::Status numbered = space->NumberPoints(); !numbered.ok()) return numbered;
  if (absl::Status found = space->FindShapes(); !found.ok()) return found;
  for (const RecordedConfiguration& configuration : space->configurations_) {
    if (configuration.milliseconds) space->ascending_.push_back(*configuration.milliseconds);
  }
  std::sort(space->ascending_.begin(), space->ascending_.end());
  return space;
}

void RecordedSpace::CollectDecisions() {
  std::vector<std::set<std::string>> tokens;
  std::vector<std::string> names;  // in order of first appearance
  for (const RecordedConfiguration& configuration : configurations_) {
    for (const auto& [name, token] : configuration.schedule.decisions) {
      const auto [found, fresh] =
          decision_of_name_.try_emplace(name, static_cast<int>(names.size()));
      if (fresh) {
        names.push_back(name);
        tokens.emplace_back();
      }
      tokens[found->second].insert(token);
    }
  }
  value_of_token_.resize(names.size());
  for (size_t d = 0; d < names.size(); ++d) {
    decisions_.push_back(MakeDecision(names[d], tokens[d]));
    for (size_t v = 0; v < decisions_[d].tokens.size(); ++v) {
      value_of_token_[d][decisions_[d].tokens[v]] = static_cast<int32_t>(v);
    }
  }
}

absl::Status RecordedSpace::Sort() {
  struct Point {
    std::vector<int32_t> values;
    size_t place;
  };
  std::vector<Point> points(configurations_.size());
  for (size_t i = 0; i < points.size(); ++i) {
    points[i].place = i;
    points[i].values.assign(decisions_.size(), kAbsentValue);
    for (const auto& [name, token] : configurations_[i].schedule.decisions) {
      const int d = decision_of_name_.at(name);
      points[i].values[d] = value_of_token_[d].at(token);
    }
  }
  std::sort(points.begin(), points.end(), [&](const Point& a, const Point& b) {
    const int variants = configurations_[a.place].schedule.variant.compare(
        configurations_[b.place].schedule.variant);
    return variants != 0 ? variants < 0 : a.values < b.values;
  });
  std::vector<RecordedConfiguration> sorted;
  sorted.reserve(points.size());
  for (const Point& point : points) {
    sorted.push_back(std::move(configurations_[point.place]));
    values_.insert(values_.end(), point.values.begin(), point.values.end());
  }
  configurations_ = std::move(sorted);
  for (size_t i = 0; i < configurations_.size(); ++i) {
    const std::string& variant = configurations_[i].schedule.variant;
    if (parts_.empty() || parts_.back().variant != variant) parts_.push_back({variant, i, i});
    parts_.back().end = i + 1;
    if (!index_of_key_.try_emplace(configurations_[i].key, i).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "configuration `", absl::Utf8SafeCEscape(configurations_[i].key), "` is there twice"));
    }
  }
  return absl::OkStatus();
}

absl::Status RecordedSpace::NumberPoints() {
  // Sums of odd random strides, modulo 2^128: two different points have the same number with a
  // chance below 2^-100, however many values the decisions have.
  std::mt19937_64 random(1);
  const auto draw = [&] { return absl::MakeUint128(random(), random() | 1); };
  for (size_t d = 0; d < decisions_.size(); ++d) strides_.push_back(draw());
  part_stride_ = draw();
  index_of_code_.reserve(configurations_.size());
  for (size_t p = 0; p < parts_.size(); ++p) {
    for (absl::uint128 i = parts_[p].begin; i < parts_[p].end; ++i) {
      const auto [found, fresh] = index_of_code_.try_emplace(
          Code(static_cast<int>(p), Values(i)), static_cast<uint32_t>(absl::Uint128Low64(i)));
      if (!fresh) {
        return absl::InvalidArgumentError(absl::StrCat(
            "configurations `", absl::Utf8SafeCEscape(configuration(found->second).key), "` and `",
            absl::Utf8SafeCEscape(configuration(i).key), "` choose the same"));
      }
    }
  }
  return absl::OkStatus();
}

absl::uint128 RecordedSpace::Code(int part, absl::Span<const int32_t> values) const {
  absl::uint128 code = part * part_stride_;
  for (size_t d = 0; d < values.size(); ++d) code += strides_[d] * (values[d] + 1);
  return code;
}

absl::Status RecordedSpace::FindShapes() {
  std::map<std::pair<int, std::vector<bool>>, int> known;
  std::vector<std::vector<uint32_t>> members;  // of each shape, ascending
  shape_.resize(configurations_.size());
  for (size_t p = 0; p < parts_.size(); ++p) {
    for (uint32_t i = absl::Uint128Low64(parts_[p].begin); i < parts_[p].end; ++i) {
      std::vector<bool> present;
      for (int32_t value : Values(i)) present.push_back(value != kAbsentValue);
      const auto [found, fresh] =
          known.try_emplace({static_cast<int>(p), present}, static_cast<int>(shapes_.size()));
      if (fresh) {
        shapes_.push_back({.present = present, .part = static_cast<int>(p)});
        members.emplace_back();
      }
      shape_[i] = found->second;
      members[found->second].push_back(i);
    }
  }
  for (const Part& part : parts_) {
    const int64_t shapes = std::count_if(known.begin(), known.end(), [&](const auto& shape) {
      return &parts_[shape.first.first] == &part;
    });
    const int64_t count = static_cast<int64_t>(absl::Uint128Low64(part.end - part.begin));
    if (shapes == 1 || shapes * count <= kMostChangesOfShape) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "the ", count, " configurations have ", shapes,
        " different sets of parameters; expected that few parameters are missing anywhere (the "
        "product is at most ",
        kMostChangesOfShape, ")"));
  }
  for (Shape& from : shapes_) {
    for (size_t to = 0; to < shapes_.size(); ++to) {
      if (&from == &shapes_[to] || from.part != shapes_[to].part) continue;
      Shape::Other other;
      for (size_t d = 0; d < decisions_.size(); ++d) {
        if (from.present[d] && shapes_[to].present[d]) other.shared.push_back(static_cast<int>(d));
      }
      for (uint32_t i : members[to]) {
        std::vector<int32_t> projected;
        for (int d : other.shared) projected.push_back(Values(i)[d]);
        other.least.try_emplace(std::move(projected), i);  // indices ascend: the first is the least
      }
      from.others.push_back(std::move(other));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<absl::uint128> RecordedSpace::IndexOf(const Schedule& schedule) const {
  int part = -1;
  for (size_t p = 0; p < parts_.size(); ++p) {
    if (parts_[p].variant == schedule.variant) part = static_cast<int>(p);
  }
  if (part < 0) {
    std::vector<std::string> names;
    for (const Part& known : parts_) names.push_back(known.variant);
    return absl::InvalidArgumentError(absl::StrCat("variant `", schedule.variant,
                                                   "` was not recorded; recorded are ",
                                                   absl::StrJoin(names, ", ")));
  }
  absl::uint128 code = part * part_stride_;
  for (const auto& [name, token] : schedule.decisions) {
    const auto decision = decision_of_name_.find(name);
    if (decision == decision_of_name_.end()) {
      return absl::InvalidArgumentError(absl::StrCat("no recorded schedule decides `", name, "`"));
    }
    const int d = decision->second;
    const auto value = value_of_token_[d].find(token);
    if (value == value_of_token_[d].end()) {
      return absl::InvalidArgumentError(absl::StrCat("`", name, "=", token,
                                                     "` was not recorded; its values are ",
                                                     absl::StrJoin(decisions_[d].tokens, ", ")));
    }
    code += strides_[d] * (value->second + 1);
  }
  const auto found = index_of_code_.find(code);
  if (found == index_of_code_.end()) {
    return absl::InvalidArgumentError(absl::StrCat("`", schedule.ToString(),
                                                   "` was not recorded: no configuration has these "
                                                   "values together"));
  }
  return found->second;
}

std::vector<absl::uint128> RecordedSpace::Neighbours(absl::uint128 index) const {
  const absl::Span<const int32_t> values = Values(index);
  const Shape& shape = shapes_[shape_[absl::Uint128Low64(index)]];
  const absl::uint128 code = Code(shape.part, values);
  std::vector<absl::uint128> neighbours;
  for (size_t d = 0; d < values.size(); ++d) {
    if (values[d] == kAbsentValue) continue;
    const absl::uint128 without = code - strides_[d] * (values[d] + 1);
    for (size_t v = 0; v < decisions_[d].tokens.size(); ++v) {
      if (static_cast<int32_t>(v) == values[d]) continue;
      const auto found = index_of_code_.find(without + strides_[d] * (v + 1));
      if (found != index_of_code_.end()) neighbours.push_back(found->second);
    }
  }
  for (const Shape::Other& other : shape.others) {
    std::vector<int32_t> projected;
    for (int d : other.shared) projected.push_back(values[d]);
    for (size_t s = 0; s < other.shared.size(); ++s) {
      const int d = other.shared[s];
      for (size_t v = 0; v < decisions_[d].tokens.size(); ++v) {
        if (static_cast<int32_t>(v) == values[d]) continue;
        projected[s] = static_cast<int32_t>(v);
        const auto found = other.least.find(projected);
        if (found != other.least.end()) neighbours.push_back(found->second);
      }
      projected[s] = values[d];
    }
  }
  std::sort(neighbours.begin(), neighbours.end());
  neighbours.erase(std::unique(neighbours.begin(), neighbours.end()), neighbours.end());
  return neighbours;
}

absl::StatusOr<absl::uint128> RecordedSpace::IndexOfKey(const std::string& key) const {
  const auto found = index_of_key_.find(key);
  if (found == index_of_key_.end()) {
    return absl::NotFoundError(absl::StrCat("no configuration is called `", key, "`"));
  }
  return found->second;
}

std::vector<std::string> NonsenseIn(const RecordedSpace& space) {
  std::vector<std::string> reasons;
  std::vector<double> within;
  std::vector<double> between;
  for (absl::uint128 i = 0; i < space.Count(); ++i) {
    const RecordedConfiguration& configuration = space.configuration(i);
    if (!configuration.milliseconds || configuration.samples.size() < 2) continue;
    within.push_back(StandardDeviationOfLog(configuration.samples) /
                     std::sqrt(static_cast<double>(configuration.samples.size())));
    between.push_back(*configuration.milliseconds);
  }
  if (within.size() >= kFewestToJudge) {
    const double noise = Median(std::move(within));
    const double spread = StandardDeviationOfLog(between);
    if (noise > kMostNoise * spread) {
      reasons.push_back(absl::StrFormat(
          "its times look like nonsense: the samples of one configuration scatter so much that its "
          "time is known to %.1f%%, and the configurations differ by %.1f%%; a twentieth of that "
          "or "
          "less would make their order mean something",
          100 * noise, 100 * spread));
    }
  }
  const absl::Span<const double> times = space.ascending_milliseconds();
  size_t most = 0;
  for (size_t first = 0, i = 1; i <= times.size(); ++i) {
    if (i < times.size() && times[i] == times[first]) continue;
    most = std::max(most, i - first);
    first = i;
  }
  if (times.size() >= kFewestToJudge && 2 * most >= times.size()) {
    reasons.push_back(
        absl::StrFormat("its times look like nonsense: %d of %d configurations have the very same",
                        most, times.size()));
  }
  return reasons;
}

}  // namespace tilewright
