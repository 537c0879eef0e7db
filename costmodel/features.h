// Features are what a learned model knows of a schedule: named numbers with units, counted from its
// plan and its decisions, never measured. Missing is missing (NaN): a decision that is absent, or
// that another variant has.
//
//   FeatureSchema schema;                                  // names -> columns, grows as spaces
//   bring new names FeatureExtractor extractor(space, sizes, rates, &schema);
//   absl::StatusOr<FeatureRow> row = extractor.Extract(schedule);
//
// Rows of several spaces (other shapes, other devices, other variants of a family) made with one
// schema may be trained on together: a name has the same column in all of them. Amounts (bytes,
// operations, seconds, values of decisions >= 0) are scaled as log2(1 + x), because the ratio of
// two of them matters and trees split on ranks; ratios in 0..1 stay as they are.
#ifndef TILEWRIGHT_COSTMODEL_FEATURES_H_
#define TILEWRIGHT_COSTMODEL_FEATURES_H_

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "costmodel/bound.h"
#include "schedule/variant.h"

namespace tilewright {

struct Feature {
  std::string
      name;  // "plan.l2_bytes", "decision.tile_m", "variant.contraction.tiled", "target.cores"
  std::string unit;  // as scaled: "log2 B", "log2", "" for a ratio or a flag
  bool operator==(const Feature&) const = default;
};

// The value of a feature that a row does not have.
inline constexpr float kMissingFeature = std::numeric_limits<float>::quiet_NaN();

// By column of the schema; shorter than the schema if it has grown since (the rest is missing).
using FeatureRow = std::vector<float>;

// Names to columns, in order of first appearance. Column 0 is always the bound. Not thread-safe.
class FeatureSchema {
 public:
  static constexpr int kBoundColumn = 0;  // "bound", log2 s

  FeatureSchema();
  // The column of a feature; adds it if it is new.
  int Column(const std::string& name, const std::string& unit);
  // -1 if there is none.
  int Find(const std::string& name) const;
  absl::Span<const Feature> features() const { return features_; }

 private:
  std::vector<Feature> features_;
  absl::flat_hash_map<std::string, int> columns_;
};

// Makes the rows of one space at one set of sizes. Not thread-safe. Borrows the schema, which must
// outlive it.
class FeatureExtractor {
 public:
  FeatureExtractor(std::shared_ptr<const ScheduleSpace> space, Sizes sizes, DeviceRates rates,
                   FeatureSchema* schema);
  // InvalidArgument: not a legal schedule of the space. OutOfRange: sizes outside the workload's
  // ranges.
  absl::StatusOr<FeatureRow> Extract(const Schedule& schedule);
  // What the bound is computed from, for calibrating it with a measured time.
  absl::StatusOr<BoundQuantities> Quantities(const Schedule& schedule) const;

 private:
  // The columns of what every schedule of one variant has.
  struct VariantColumns {
    const Variant* variant;
    int flag;
    std::vector<int> decisions;
  };
  void AddPlan(const Plan& plan, FeatureRow& row);

  const std::shared_ptr<const ScheduleSpace> space_;
  const Sizes sizes_;
  const DeviceRates rates_;
  FeatureSchema* const schema_;
  std::vector<VariantColumns> variants_;
  FeatureRow constants_;  // workload and target features, the same in every row
  absl::flat_hash_map<std::string, int> quantities_;  // the plans' own
};

// A row in words, for `explain`: one line per feature that is not missing.
std::string FeaturesText(const FeatureSchema& schema, const FeatureRow& row);

}  // namespace tilewright

#endif  // TILEWRIGHT_COSTMODEL_FEATURES_H_
