#include "schedule/variant.h"

#include <algorithm>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tilewright {
namespace {

// The sizes constraints are evaluated at: every combination of each index's ends and the
// breakpoints that constraints name for it. One point if all sizes are fixed.
std::vector<std::vector<int64_t>> SizePoints(absl::Span<const SizeRange> sizes,
                                             absl::Span<const Constraint> constraints) {
  std::vector<std::vector<int64_t>> points(1);
  for (size_t index = 0; index < sizes.size(); ++index) {
    std::set<int64_t> values = {sizes[index].low, sizes[index].high};
    for (const Constraint& constraint : constraints) {
      for (size_t i = 0; i < std::min(constraint.monotone_in.size(), constraint.breakpoints.size());
           ++i) {
        if (constraint.monotone_in[i] != static_cast<int>(index)) continue;
        for (int64_t size : constraint.breakpoints[i]) {
          if (size > sizes[index].low && size < sizes[index].high) values.insert(size);
        }
      }
    }
    std::vector<std::vector<int64_t>> longer;
    for (const std::vector<int64_t>& point : points) {
      for (int64_t value : values) {
        longer.push_back(point);
        longer.back().push_back(value);
      }
    }
    points = std::move(longer);
  }
  return points;
}

// Why families or variants do not apply: the first reason of each family, in the list's order.
class Reasons {
 public:
  void Add(const std::string& family, const std::string& reason) {
    for (const auto& [known, unused] : reasons_) {
      if (known == family) return;
    }
    reasons_.emplace_back(family, reason);
  }
  std::string ToString() const {
    if (reasons_.empty()) return "there are no variants";
    return absl::StrJoin(reasons_, "; ", absl::PairFormatter(": "));
  }

 private:
  std::vector<std::pair<std::string, std::string>> reasons_;
};

std::string CountsText(const VariantSpace& space) {
  return absl::StrJoin(space.CountsAfterEachConstraint(), ", ",
                       [](std::string* out, const VariantSpace::ConstraintCount& count) {
                         absl::StrAppend(
                             out, count.count == 0 ? "0" : "some", " after ",
                             count.constraint.empty() ? "no constraint" : count.constraint);
                       });
}

class WorkloadScheduleSpace : public ScheduleSpace {
 public:
  WorkloadScheduleSpace(Workload workload, Target target)
      : workload_(std::move(workload)), target_(std::move(target)) {}

  // Adds the variants that apply. FailedPrecondition if none does.
  absl::Status Add(absl::Span<const Variant> variants) {
    Reasons reasons;
    std::vector<std::shared_ptr<const Space>> parts;
    for (const Variant& variant : variants) {
      const auto& backends = variant.backends;
      if (std::find(backends.begin(), backends.end(), target_.backend) == backends.end()) {
        reasons.Add(variant.family,
                    absl::StrCat(variant.name, " has writers for ", absl::StrJoin(backends, ", "),
                                 ", not for ", target_.backend));
        continue;
      }
      absl::Status applies = variant.applies(workload_, target_);
      if (!applies.ok()) {
        reasons.Add(variant.family, std::string(applies.message()));
        continue;
      }
      SpaceDefinition definition = variant.define(workload_, target_);
      auto points = SizePoints(workload_.sizes(), definition.constraints);
      absl::StatusOr<std::unique_ptr<VariantSpace>> space =
          VariantSpace::Make(std::move(definition), std::move(points));
      if (!space.ok()) return space.status();
      if ((*space)->Count() == 0) {
        reasons.Add(
            variant.family,
            absl::StrCat(variant.name, " has no legal schedule here: ", CountsText(**space)));
        continue;
      }
      absl::Status has_default = CheckDefault(variant, **space);
      if (!has_default.ok()) return has_default;
      variants_.push_back(&variant);
      spaces_.push_back(*std::move(space));
      parts.push_back(spaces_.back());
    }
    if (variants_.empty()) {
      return absl::FailedPreconditionError(absl::StrCat("no family can write this program for ",
                                                        target_.kind, ": ", reasons.ToString()));
    }
    space_ = NewUnionSpace(std::move(parts));
    return absl::OkStatus();
  }

  const Workload& workload() const override { return workload_; }
  const Target& target() const override { return target_; }
  const Space& space() const override { return *space_; }
  absl::Span<const Variant* const> variants() const override { return variants_; }

  const VariantSpace& variant_space(std::string_view variant) const override {
    size_t i = 0;
    while (variants_[i]->name != variant) ++i;  // Precondition: it is one of variants().
    return *spaces_[i];
  }

  absl::StatusOr<std::unique_ptr<Plan>> MakePlan(const Schedule& schedule,
                                                 absl::Span<const int64_t> sizes) const override {
    absl::Status in_range = workload_.CheckSizes(sizes);
    if (!in_range.ok()) return in_range;
    for (size_t i = 0; i < variants_.size(); ++i) {
      if (variants_[i]->name != schedule.variant) continue;
      absl::StatusOr<std::vector<int64_t>> numbers = spaces_[i]->NumbersOf(schedule);
      if (!numbers.ok()) return numbers.status();
      return variants_[i]->plan(workload_, target_, *numbers, sizes);
    }
    return space_->IndexOf(schedule).status();  // names the variants there are
  }

  Schedule DefaultSchedule() const override { return DefaultOf(variants_.size() - 1); }
  Schedule NaiveSchedule() const override { return DefaultOf(0); }

  std::vector<Schedule> Suggestions(size_t most) const override {
    std::vector<std::vector<Schedule>> queues;  // by variant, the best one first
    for (size_t i = variants_.size(); i-- > 0;) {
      if (variants_[i]->suggestions == nullptr) continue;
      std::vector<Schedule>& queue = queues.emplace_back();
      queue.push_back(DefaultOf(i));
      for (const Schedule& schedule : variants_[i]->suggestions(workload_, target_)) {
        const absl::StatusOr<absl::uint128> index = spaces_[i]->IndexOf(schedule);
        if (index.ok()) queue.push_back(spaces_[i]->At(*index));
      }
    }
    std::vector<Schedule> all;
    bool more = true;
    for (size_t turn = 0; more && all.size() < most; ++turn) {
      more = false;
      for (const std::vector<Schedule>& queue : queues) {
        if (turn >= queue.size() || all.size() == most) continue;
        more = true;
        if (std::find(all.begin(), all.end(), queue[turn]) == all.end()) all.push_back(queue[turn]);
      }
    }
    return all;
  }

 private:
  // A default that its own space refuses is a fault of the variant, told once here with the
  // constraint it breaks.
  absl::Status CheckDefault(const Variant& variant, const VariantSpace& space) const {
    const Schedule schedule = variant.default_schedule(workload_, target_);
    absl::StatusOr<absl::uint128> index = space.IndexOf(schedule);
    if (index.ok()) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("the default schedule ", schedule.ToString(),
                                            " is illegal: ", index.status().message()));
  }
  // In the text that the space itself writes.
  Schedule DefaultOf(size_t i) const {
    return spaces_[i]->At(*spaces_[i]->IndexOf(variants_[i]->default_schedule(workload_, target_)));
  }

  const Workload workload_;
  const Target target_;
  std::vector<const Variant*> variants_;
  std::vector<std::shared_ptr<const VariantSpace>> spaces_;  // parallel to variants_
  std::unique_ptr<Space> space_;
};

}  // namespace

absl::StatusOr<const Variant*> FindVariant(std::string_view name) {
  for (const Variant& variant : AllVariants()) {
    if (variant.name == name) return &variant;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown variant '", std::string(name), "'; known: ",
      absl::StrJoin(AllVariants(), ", ",
                    [](std::string* out, const Variant& variant) { *out += variant.name; })));
}

absl::StatusOr<std::shared_ptr<const ScheduleSpace>> ScheduleSpace::Make(
    Workload workload, Target target, absl::Span<const Variant> variants) {
  auto space = std::make_shared<WorkloadScheduleSpace>(std::move(workload), std::move(target));
  absl::Status added = space->Add(variants);
  if (!added.ok()) return added;
  return std::shared_ptr<const ScheduleSpace>(std::move(space));
}

}  // namespace tilewright
