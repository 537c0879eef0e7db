#include "costmodel/features.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tilewright {
namespace {

float ScaleAmount(double x) { return static_cast<float>(x >= 0 ? std::log2(1 + x) : x); }

// A quantity without a unit is a ratio and stays as it is.
float Scale(double x, const std::string& unit) {
  return unit.empty() ? static_cast<float>(x) : ScaleAmount(x);
}
std::string ScaledUnit(const std::string& unit) {
  return unit.empty() ? unit : absl::StrCat("log2 ", unit);
}

void Set(FeatureRow& row, int column, float value) {
  if (row.size() <= static_cast<size_t>(column)) row.resize(column + 1, kMissingFeature);
  row[column] = value;
}

}  // namespace

FeatureSchema::FeatureSchema() { Column("bound", "log2 s"); }

int FeatureSchema::Column(const std::string& name, const std::string& unit) {
  const auto [found, inserted] = columns_.try_emplace(name, static_cast<int>(features_.size()));
  if (inserted) features_.push_back({name, unit});
  return found->second;
}

int FeatureSchema::Find(const std::string& name) const {
  const auto found = columns_.find(name);
  return found == columns_.end() ? -1 : found->second;
}

FeatureExtractor::FeatureExtractor(std::shared_ptr<const ScheduleSpace> space, Sizes sizes,
                                   DeviceRates rates, FeatureSchema* schema)
    : space_(std::move(space)), sizes_(std::move(sizes)), rates_(rates), schema_(schema) {
  for (const Variant* variant : space_->variants()) {
    VariantColumns columns{
        variant, schema_->Column(absl::StrCat("variant.", variant->name), ""), {}};
    for (const Decision& decision : space_->variant_space(variant->name).definition().decisions) {
      columns.decisions.push_back(
          schema_->Column(absl::StrCat("decision.", decision.name), "log2"));
    }
    variants_.push_back(std::move(columns));
  }
  const auto constant = [&](const std::string& name, const std::string& unit, double value) {
    Set(constants_, schema_->Column(name, ScaledUnit(unit)), Scale(value, unit));
  };
  const Workload& workload = space_->workload();
  constant("workload.operations", "op", workload.Operations(sizes_));
  constant("workload.compulsory_bytes", "B", workload.CompulsoryBytes(sizes_));
  for (size_t i = 0; i < sizes_.size(); ++i) {
    constant(absl::StrCat("workload.size.", i), "element", static_cast<double>(sizes_[i]));
  }
  const Target& target = space_->target();
  constant("target.cores", "core", target.cores);
  if (target.is_gpu()) {
    constant("target.l2_bytes", "B", static_cast<double>(target.l2_bytes));
    constant("target.clock_mhz", "MHz", target.clock_mhz);
    constant("target.memory_bytes_per_second", "B/s",
             static_cast<double>(target.memory_bytes_per_second));
    constant("target.shared_memory_bytes", "B", static_cast<double>(target.shared_memory_bytes));
    constant("target.tensor_operations_per_cycle", "op", target.tensor_operations_per_cycle);
    return;
  }
  constant("target.vector_bits", "bit", target.vector_bits);
  constant("target.l1_bytes", "B", static_cast<double>(target.l1_bytes));
  constant("target.l2_bytes", "B", static_cast<double>(target.l2_bytes));
  constant("target.l3_bytes", "B", static_cast<double>(target.l3_bytes));
}

void FeatureExtractor::AddPlan(const Plan& plan, FeatureRow& row) {
  const auto set = [&](const std::string& name, const std::string& unit, double value) {
    Set(row, schema_->Column(name, ScaledUnit(unit)), Scale(value, unit));
  };
  const Bound bound = ComputeBound(QuantitiesOf(plan, space_->target()), rates_);
  Set(row, FeatureSchema::kBoundColumn, static_cast<float>(std::log2(bound.seconds)));
  set("bound.arithmetic", "ns", 1e9 * bound.arithmetic_seconds);
  set("bound.l1", "ns", 1e9 * bound.l1_seconds);
  set("bound.l2", "ns", 1e9 * bound.l2_seconds);
  set("bound.l3", "ns", 1e9 * bound.l3_seconds);
  set("bound.memory", "ns", 1e9 * bound.memory_seconds);
  set("plan.threads", "thread", plan.threads);
  set("plan.workspace_bytes", "B", static_cast<double>(plan.workspace_bytes));
  set("plan.operations", "op", plan.operations);
  set("plan.memory_bytes", "B", plan.memory_bytes);
  set("plan.l3_bytes", "B", plan.l3_bytes);
  set("plan.l2_bytes", "B", plan.l2_bytes);
  set("plan.l1_bytes", "B", plan.l1_bytes);
  set("plan.issue_efficiency", "", plan.issue_efficiency);
  set("plan.balance", "", plan.balance);
  for (const Quantity& quantity : plan.quantities) {
    const auto [found, inserted] = quantities_.try_emplace(quantity.name, 0);
    if (inserted) {
      found->second =
          schema_->Column(absl::StrCat("plan.", quantity.name), ScaledUnit(quantity.unit));
    }
    Set(row, found->second, Scale(quantity.value, quantity.unit));
  }
}

absl::StatusOr<FeatureRow> FeatureExtractor::Extract(const Schedule& schedule) {
  absl::StatusOr<std::unique_ptr<Plan>> plan = space_->MakePlan(schedule, sizes_);
  if (!plan.ok()) return plan.status();
  FeatureRow row = constants_;
  row.reserve(schema_->features().size());
  for (const VariantColumns& columns : variants_) {
    const bool own = columns.variant->name == schedule.variant;
    Set(row, columns.flag, own ? 1 : 0);
    if (!own) continue;
    absl::StatusOr<std::vector<int64_t>> numbers =
        space_->variant_space(schedule.variant).NumbersOf(schedule);
    if (!numbers.ok()) return numbers.status();
    for (size_t i = 0; i < numbers->size(); ++i) {
      if ((*numbers)[i] == kAbsent) continue;
      Set(row, columns.decisions[i], ScaleAmount(static_cast<double>((*numbers)[i])));
    }
  }
  AddPlan(**plan, row);
  return row;
}

absl::StatusOr<BoundQuantities> FeatureExtractor::Quantities(const Schedule& schedule) const {
  absl::StatusOr<std::unique_ptr<Plan>> plan = space_->MakePlan(schedule, sizes_);
  if (!plan.ok()) return plan.status();
  return QuantitiesOf(**plan, space_->target());
}

std::string FeaturesText(const FeatureSchema& schema, const FeatureRow& row) {
  std::string text;
  for (size_t i = 0; i < row.size(); ++i) {
    if (std::isnan(row[i])) continue;
    const Feature& feature = schema.features()[i];
    absl::StrAppendFormat(&text, "  %-36s %.6g%s%s\n", feature.name, row[i],
                          feature.unit.empty() ? "" : " ", feature.unit);
  }
  return text;
}

}  // namespace tilewright
