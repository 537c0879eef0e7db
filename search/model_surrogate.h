// The cost model as a strategy sees it: features of a schedule's plan in, scores out.
#ifndef TILEWRIGHT_SEARCH_MODEL_SURROGATE_H_
#define TILEWRIGHT_SEARCH_MODEL_SURROGATE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "db/database.h"
#include "measure/regime.h"
#include "schedule/variant.h"
#include "search/search_state.h"

namespace tilewright {

struct ModelSurrogateOptions {
  std::string model = "xgboost";  // a row of costmodel/models.cc
  // What the log knows of other shapes and devices; null: nothing. Read once, up to `through_row`,
  // so that a resumed run learns from the same rows.
  Database* log = nullptr;
  int64_t through_row = 0;
  // Part of the group name of this run's results.
  std::string run;
};

// Borrows the space, which must outlive it. A model that fails to train leaves the scores as they
// were.
absl::StatusOr<std::unique_ptr<LearningSurrogate>> NewModelSurrogate(
    std::shared_ptr<const ScheduleSpace> space, const Sizes& at, const std::string& regime,
    const ModelSurrogateOptions& options);

// The same models on the decisions alone (decision_encoding.h): for a recorded space, which has no
// plans to take features from. `known`: results of another device, by schedules of this space,
// which every training begins with. Borrows the space. InvalidArgument: no such row of
// costmodel/models.cc.
absl::StatusOr<std::unique_ptr<LearningSurrogate>> NewDecisionSurrogate(
    const Space* space, uint64_t seed, const std::string& model,
    absl::Span<const Result> known = {});

}  // namespace tilewright

#endif  // TILEWRIGHT_SEARCH_MODEL_SURROGATE_H_
