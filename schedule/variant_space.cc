// Ranks are lexicographic: schedules are ordered by their first decision's value, then by their
// second's, and so on. The rank of a path is the sum, over its layers, of the paths through the
// values before the one it takes.
#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "schedule/diagram.h"
#include "schedule/space.h"

namespace tilewright {
namespace {

constexpr size_t kMaxKeys = size_t{4} << 20;
constexpr int kSkipped = -1;  // in a path: the decision is absent

class DiagramSpace : public VariantSpace {
 public:
  DiagramSpace(ResolvedDefinition resolved, std::vector<std::vector<int64_t>> size_points,
               Diagram diagram)
      : resolved_(std::move(resolved)),
        size_points_(std::move(size_points)),
        diagram_(std::move(diagram)),
        part_{resolved_.definition.variant, 0, diagram_.count()} {}

  absl::uint128 Count() const override { return diagram_.count(); }
  Schedule At(absl::uint128 index) const override;
  absl::StatusOr<absl::uint128> IndexOf(const Schedule& schedule) const override;
  std::vector<absl::uint128> Neighbours(absl::uint128 index) const override;
  absl::Span<const Part> Parts() const override { return {&part_, 1}; }
  const SpaceDefinition& definition() const override { return resolved_.definition; }
  absl::StatusOr<std::vector<int64_t>> NumbersOf(const Schedule& schedule) const override;
  std::vector<ConstraintCount> CountsAfterEachConstraint() const override;

 private:
  // By layer: the number of the value taken, or kSkipped.
  using Path = std::vector<int>;

  const Decision& decision(int layer) const { return resolved_.definition.decisions[layer]; }
  int layers() const { return resolved_.decisions(); }
  Path PathAt(absl::uint128 index) const;
  absl::uint128 RankStep(int layer, Diagram::Node node, int value) const;
  // The legal path of `schedule`, its numbers in `values`.
  absl::StatusOr<Path> PathOf(const Schedule& schedule, std::vector<int64_t>& values) const;
  absl::Status CheckNames(const Schedule& schedule) const;
  absl::StatusOr<int> ValueOf(int layer, const std::string& token) const;
  absl::Status CheckConstraints(absl::Span<const int64_t> values) const;
  std::string AcceptedValues(int layer) const;
  bool Complete(int layer, Diagram::Node node, const Path& kept, absl::uint128& rank,
                absl::flat_hash_set<std::pair<int, Diagram::Node>>& dead) const;

  const ResolvedDefinition resolved_;
  const std::vector<std::vector<int64_t>> size_points_;
  const Diagram diagram_;
  const Part part_;
};

DiagramSpace::Path DiagramSpace::PathAt(absl::uint128 index) const {
  Path path(layers());
  Diagram::Node node = diagram_.root();
  for (int layer = 0; layer < layers(); ++layer) {
    int value = 0;
    while (true) {
      const absl::uint128 paths = diagram_.Paths(layer + 1, diagram_.Child(layer, node, value));
      if (index < paths) break;
      index -= paths;
      ++value;
    }
    path[layer] = diagram_.Absent(layer, node) ? kSkipped : value;
    node = diagram_.Child(layer, node, value);
  }
  return path;
}

// The number of paths from `node` that come before those with value number `value`.
absl::uint128 DiagramSpace::RankStep(int layer, Diagram::Node node, int value) const {
  absl::uint128 rank = 0;
  for (int earlier = 0; earlier < value; ++earlier) {
    rank += diagram_.Paths(layer + 1, diagram_.Child(layer, node, earlier));
  }
  return rank;
}

Schedule DiagramSpace::At(absl::uint128 index) const {
  const Path path = PathAt(index);
  Schedule schedule;
  schedule.variant = resolved_.definition.variant;
  schedule.decisions.reserve(path.size());
  for (int layer = 0; layer < layers(); ++layer) {
    if (path[layer] == kSkipped) continue;
    schedule.decisions.emplace_back(decision(layer).name,
                                    decision(layer).values[path[layer]].token);
  }
  return schedule;
}

std::string DiagramSpace::AcceptedValues(int layer) const {
  return absl::StrJoin(decision(layer).values, ", ",
                       [](std::string* out, const DecisionValue& value) { *out += value.token; });
}

absl::StatusOr<int> DiagramSpace::ValueOf(int layer, const std::string& token) const {
  const std::vector<DecisionValue>& values = decision(layer).values;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].token == token) return static_cast<int>(i);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(decision(layer).name, "=", token,
                   " is no value of that decision; accepted: ", AcceptedValues(layer)));
}

absl::Status DiagramSpace::CheckNames(const Schedule& schedule) const {
  const SpaceDefinition& definition = resolved_.definition;
  if (schedule.variant != definition.variant) {
    return absl::InvalidArgumentError(absl::StrCat(
        "variant '", schedule.variant, "' is not in this space; it has: ", definition.variant));
  }
  absl::flat_hash_set<std::string> seen;
  for (const auto& [name, token] : schedule.decisions) {
    if (!seen.insert(name).second) {
      return absl::InvalidArgumentError(absl::StrCat("decision '", name, "' is given twice"));
    }
    if (std::none_of(
            definition.decisions.begin(), definition.decisions.end(),
            [&, name = name](const Decision& decision) { return decision.name == name; })) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", name, "' is no decision of ", definition.variant, "; its decisions: ",
          absl::StrJoin(definition.decisions, ", ", [](std::string* out, const Decision& decision) {
            *out += decision.name;
          })));
    }
  }
  return absl::OkStatus();
}

absl::Status DiagramSpace::CheckConstraints(absl::Span<const int64_t> values) const {
  for (size_t i = 0; i < resolved_.definition.constraints.size(); ++i) {
    const int point = FirstViolation(resolved_, i, values, size_points_);
    if (point < 0) continue;
    const Constraint& constraint = resolved_.definition.constraints[i];
    const std::vector<int64_t> numbers = Gather(resolved_.constraint_reads[i], values);
    std::string message =
        absl::StrCat(constraint.name, ": ", constraint.explain(numbers, size_points_[point]));
    if (size_points_.size() > 1) {
      absl::StrAppend(&message, " (at sizes ", absl::StrJoin(size_points_[point], ","), ")");
    }
    return absl::InvalidArgumentError(message);
  }
  return absl::OkStatus();
}

absl::StatusOr<DiagramSpace::Path> DiagramSpace::PathOf(const Schedule& schedule,
                                                        std::vector<int64_t>& values) const {
  absl::Status named = CheckNames(schedule);
  if (!named.ok()) return named;
  Path path(layers(), kSkipped);
  values.assign(resolved_.variables(), kAbsent);
  for (int layer = 0; layer < layers(); ++layer) {
    const Decision& row = decision(layer);
    const std::string* token = schedule.Find(row.name);
    if (!IsPresent(resolved_, layer, values)) {
      if (token == nullptr) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("decision '", row.name, "' has no effect here (it depends on ",
                       absl::StrJoin(row.depends_on, ", "), "); leave it out"));
    }
    if (token == nullptr && !row.value_of_older_texts.empty()) token = &row.value_of_older_texts;
    if (token == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("decision '", row.name, "' is missing; accepted: ", AcceptedValues(layer)));
    }
    absl::StatusOr<int> value = ValueOf(layer, *token);
    if (!value.ok()) return value.status();
    path[layer] = *value;
    values[layer] = row.values[*value].number;
  }
  for (size_t i = 0; i < resolved_.combination_reads.size(); ++i) {
    values[layers() + i] = CombinationValue(resolved_, i, values);
  }
  absl::Status legal = CheckConstraints(values);
  if (!legal.ok()) return legal;
  return path;
}

absl::StatusOr<absl::uint128> DiagramSpace::IndexOf(const Schedule& schedule) const {
  std::vector<int64_t> values;
  absl::StatusOr<Path> path = PathOf(schedule, values);
  if (!path.ok()) return path.status();
  absl::uint128 rank = 0;
  Diagram::Node node = diagram_.root();
  for (int layer = 0; layer < layers(); ++layer) {
    const int value = std::max((*path)[layer], 0);
    rank += RankStep(layer, node, value);
    node = diagram_.Child(layer, node, value);
  }
  return rank;
}

absl::StatusOr<std::vector<int64_t>> DiagramSpace::NumbersOf(const Schedule& schedule) const {
  std::vector<int64_t> values;
  absl::StatusOr<Path> path = PathOf(schedule, values);
  if (!path.ok()) return path.status();
  values.resize(layers());
  return values;
}

// Walks from `node` to the end, taking the `kept` value where the decision is present and was, and
// the first value from which the end can be reached where it appears. Adds the path's rank; false
// if there is no such path. `dead` remembers where there was none: what is kept below a layer does
// not depend on how the layer was reached.
bool DiagramSpace::Complete(int layer, Diagram::Node node, const Path& kept, absl::uint128& rank,
                            absl::flat_hash_set<std::pair<int, Diagram::Node>>& dead) const {
  if (node == Diagram::kNoNode) return false;
  if (layer == layers()) return true;
  if (dead.contains(std::make_pair(layer, node))) return false;
  const bool absent = diagram_.Absent(layer, node);
  int first = 0;
  int last = diagram_.Fanout(layer, node) - 1;
  if (!absent && kept[layer] != kSkipped) first = last = kept[layer];
  absl::uint128 before = RankStep(layer, node, first);
  for (int value = first; value <= last; ++value) {
    const Diagram::Node child = diagram_.Child(layer, node, value);
    absl::uint128 below = 0;
    if (Complete(layer + 1, child, kept, below, dead)) {
      rank += before + below;
      return true;
    }
    before += diagram_.Paths(layer + 1, child);
  }
  dead.emplace(layer, node);
  return false;
}

std::vector<absl::uint128> DiagramSpace::Neighbours(absl::uint128 index) const {
  const Path path = PathAt(index);
  std::vector<absl::uint128> result;
  absl::flat_hash_set<std::pair<int, Diagram::Node>> dead;
  absl::uint128 prefix = 0;  // the rank of the path's part above `layer`
  Diagram::Node node = diagram_.root();
  for (int layer = 0; layer < layers(); ++layer) {
    const int own = std::max(path[layer], 0);
    absl::uint128 before = 0;
    for (int value = 0; value < diagram_.Fanout(layer, node); ++value) {
      const Diagram::Node child = diagram_.Child(layer, node, value);
      absl::uint128 below = 0;
      if (value != own && Complete(layer + 1, child, path, below, dead)) {
        result.push_back(prefix + before + below);
      }
      before += diagram_.Paths(layer + 1, child);
    }
    prefix += RankStep(layer, node, own);
    node = diagram_.Child(layer, node, own);
  }
  std::sort(result.begin(), result.end());
  return result;
}

std::vector<VariantSpace::ConstraintCount> DiagramSpace::CountsAfterEachConstraint() const {
  const std::vector<Constraint>& constraints = resolved_.definition.constraints;
  std::vector<ConstraintCount> counts;
  for (size_t n = 0; n <= constraints.size(); ++n) {
    counts.push_back({n == 0 ? "" : constraints[n - 1].name, diagram_.counts()[n]});
  }
  return counts;
}

}  // namespace

absl::StatusOr<std::unique_ptr<VariantSpace>> VariantSpace::Make(
    SpaceDefinition definition, std::vector<std::vector<int64_t>> size_points) {
  if (size_points.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(definition.variant, ": no sizes to evaluate constraints at"));
  }
  absl::StatusOr<ResolvedDefinition> resolved = ResolvedDefinition::Make(std::move(definition));
  if (!resolved.ok()) return resolved.status();
  absl::StatusOr<Diagram> diagram = Diagram::Compile(*resolved, size_points, kMaxKeys);
  if (!diagram.ok()) return diagram.status();
  return std::make_unique<DiagramSpace>(*std::move(resolved), std::move(size_points),
                                        *std::move(diagram));
}

}  // namespace tilewright
