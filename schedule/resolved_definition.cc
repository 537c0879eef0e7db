#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "schedule/diagram.h"

namespace tilewright {
namespace {

// The first thing wrong with a decision by itself; OK if none.
absl::Status CheckDecision(const std::string& variant, const Decision& decision) {
  const std::string where = absl::StrCat(variant, ": decision '", decision.name, "' ");
  if (decision.values.empty()) return absl::InvalidArgumentError(where + "has no values");
  for (size_t i = 0; i < decision.values.size(); ++i) {
    if (decision.values[i].number == kAbsent) {
      return absl::InvalidArgumentError(where + "has the value reserved for absence");
    }
    for (size_t j = 0; j < i; ++j) {
      if (decision.values[i].token == decision.values[j].token ||
          decision.values[i].number == decision.values[j].number) {
        return absl::InvalidArgumentError(
            absl::StrCat(where, "has the value '", decision.values[i].token, "' twice"));
      }
    }
  }
  if (!decision.depends_on.empty() && !decision.present) {
    return absl::InvalidArgumentError(where + "depends on others but has no presence function");
  }
  if (!decision.value_of_older_texts.empty() &&
      std::none_of(decision.values.begin(), decision.values.end(), [&](const DecisionValue& value) {
        return value.token == decision.value_of_older_texts;
      })) {
    return absl::InvalidArgumentError(absl::StrCat(where, "has no value '",
                                                   decision.value_of_older_texts,
                                                   "', which older texts are to mean"));
  }
  return absl::OkStatus();
}

class DefinitionResolver {
 public:
  explicit DefinitionResolver(SpaceDefinition definition) {
    result_.definition = std::move(definition);
  }

  absl::StatusOr<ResolvedDefinition> Resolve() {
    const SpaceDefinition& definition = result_.definition;
    for (const Decision& decision : definition.decisions) {
      absl::Status checked = CheckDecision(definition.variant, decision);
      if (!checked.ok()) return checked;
      // Names are looked up before the decision's own is added, so only earlier ones are found.
      int known = -1;
      result_.presence_reads.emplace_back();
      absl::Status read =
          Reads(decision.name, decision.depends_on, result_.presence_reads.back(), known);
      if (!read.ok()) return read;
      absl::Status added = Add(decision.name, static_cast<int>(result_.known.size()));
      if (!added.ok()) return added;
    }
    for (const Combination& combination : definition.combinations) {
      if (!combination.value) return MissingFunction(combination.name);
      int known = -1;
      result_.combination_reads.emplace_back();
      absl::Status read =
          Reads(combination.name, combination.reads, result_.combination_reads.back(), known);
      if (!read.ok()) return read;
      absl::Status added = Add(combination.name, known);
      if (!added.ok()) return added;
    }
    for (const Constraint& constraint : definition.constraints) {
      if (!constraint.holds || !constraint.explain) return MissingFunction(constraint.name);
      int known = -1;
      result_.constraint_reads.emplace_back();
      absl::Status read =
          Reads(constraint.name, constraint.reads, result_.constraint_reads.back(), known);
      if (!read.ok()) return read;
      result_.constraint_known.push_back(known);
    }
    return std::move(result_);
  }

 private:
  absl::Status MissingFunction(const std::string& name) const {
    return absl::InvalidArgumentError(
        absl::StrCat(result_.definition.variant, ": '", name, "' lacks a function"));
  }
  absl::Status Reads(const std::string& reader, const std::vector<std::string>& names,
                     std::vector<int>& reads, int& known) const {
    for (const std::string& name : names) {
      const auto found = numbers_.find(name);
      if (found == numbers_.end()) {
        return absl::InvalidArgumentError(
            absl::StrCat(result_.definition.variant, ": '", reader, "' reads '", name,
                         "', which is no earlier decision or combination"));
      }
      reads.push_back(found->second);
      known = std::max(known, result_.known[found->second]);
    }
    return absl::OkStatus();
  }
  absl::Status Add(const std::string& name, int known) {
    if (!numbers_.emplace(name, static_cast<int>(result_.known.size())).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(result_.definition.variant, ": the name '", name, "' is used twice"));
    }
    result_.known.push_back(known);
    return absl::OkStatus();
  }

  ResolvedDefinition result_;
  absl::flat_hash_map<std::string, int> numbers_;
};

// The numbers a function reads, without an allocation for the usual few.
class Arguments {
 public:
  Arguments(absl::Span<const int> reads, absl::Span<const int64_t> values) {
    int64_t* out = few_;
    if (reads.size() > kFew) {
      many_.resize(reads.size());
      out = many_.data();
    }
    for (size_t i = 0; i < reads.size(); ++i) out[i] = values[reads[i]];
    numbers_ = Numbers(out, reads.size());
  }
  Numbers numbers() const { return numbers_; }

 private:
  static constexpr size_t kFew = 16;
  int64_t few_[kFew];
  std::vector<int64_t> many_;
  Numbers numbers_;
};

}  // namespace

std::string ResolvedDefinition::VariableName(int variable) const {
  return variable < decisions() ? definition.decisions[variable].name
                                : definition.combinations[variable - decisions()].name;
}

absl::StatusOr<ResolvedDefinition> ResolvedDefinition::Make(SpaceDefinition definition) {
  return DefinitionResolver(std::move(definition)).Resolve();
}

bool IsPresent(const ResolvedDefinition& resolved, int decision, absl::Span<const int64_t> values) {
  const Decision& row = resolved.definition.decisions[decision];
  if (!row.present) return true;
  return row.present(Arguments(resolved.presence_reads[decision], values).numbers());
}

int64_t CombinationValue(const ResolvedDefinition& resolved, int combination,
                         absl::Span<const int64_t> values) {
  return resolved.definition.combinations[combination].value(
      Arguments(resolved.combination_reads[combination], values).numbers());
}

int FirstViolation(const ResolvedDefinition& resolved, int constraint,
                   absl::Span<const int64_t> values,
                   absl::Span<const std::vector<int64_t>> size_points) {
  const Arguments arguments(resolved.constraint_reads[constraint], values);
  const Constraint& row = resolved.definition.constraints[constraint];
  for (size_t i = 0; i < size_points.size(); ++i) {
    if (!row.holds(arguments.numbers(), size_points[i])) return static_cast<int>(i);
  }
  return -1;
}

std::vector<int64_t> Gather(absl::Span<const int> reads, absl::Span<const int64_t> values) {
  std::vector<int64_t> result;
  for (int variable : reads) result.push_back(values[variable]);
  return result;
}

}  // namespace tilewright
