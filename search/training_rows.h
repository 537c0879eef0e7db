// Records of the log as rows that a cost model learns from, and the calibrated bound they give.
#ifndef TILEWRIGHT_SEARCH_TRAINING_ROWS_H_
#define TILEWRIGHT_SEARCH_TRAINING_ROWS_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "costmodel/features.h"
#include "costmodel/model.h"
#include "db/database.h"
#include "schedule/variant.h"

namespace tilewright {

// The newest trials (at most `most`, of rows up to `through_row`) of all workloads on targets of
// `backend`, oldest first: what is known of other shapes and devices. Records that this program
// cannot read (a schedule that is illegal by now, another canonical form) are left out: they are a
// miss, not an error.
absl::StatusOr<std::vector<TrainingRow>> ReadTrainingRows(Database& log, const std::string& backend,
                                                          int64_t through_row, int most,
                                                          FeatureSchema* schema);

// The bound of `schedule` in seconds, with rates calibrated on the given measured schedules
// (seconds each). InvalidArgument: an illegal schedule, or no measurement.
absl::StatusOr<double> CalibratedBoundSeconds(
    std::shared_ptr<const ScheduleSpace> space, const Sizes& at,
    absl::Span<const std::pair<double, Schedule>> measured, const Schedule& schedule);

// For `explain`: a schedule's features and its bound, level by level, with the rates that its
// target's facts suggest.
absl::StatusOr<std::string> ExplainScore(std::shared_ptr<const ScheduleSpace> space,
                                         const Sizes& at, const Schedule& schedule);

}  // namespace tilewright

#endif  // TILEWRIGHT_SEARCH_TRAINING_ROWS_H_
