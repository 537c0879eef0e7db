// Where a search begins: the schedule its times are relative to, and the schedules it proposes
// first.
#ifndef TILEWRIGHT_SEARCH_STARTS_H_
#define TILEWRIGHT_SEARCH_STARTS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "db/database.h"
#include "schedule/schedule.h"
#include "schedule/variant.h"

namespace tilewright {

// A record's schedule if it is legal in `space`; else absent, with a warning that names `record`.
std::optional<Schedule> LegalSchedule(const ScheduleSpace& space, const std::string& text,
                                      const std::string& record,
                                      std::vector<std::string>* warnings);

struct SearchStart {
  // The incumbent: the current verdict's winner, else the best unverified trial, else the default.
  Schedule anchor;
  bool anchor_is_default = false;
  std::vector<Id> verdicts;  // current ones, which a new verdict replaces
  // Legal here, each once: the anchor, the default, what variants suggest, then the winners of
  // other workloads and devices of the same kind of backend.
  std::vector<Schedule> starts;
  std::vector<std::string> warnings;  // records that do not parse or are illegal here
};

// `log` may be null: then the default and suggestions alone.
absl::StatusOr<SearchStart> FindSearchStart(Database* log, const ScheduleSpace& space,
                                            const std::string& target_key,
                                            const std::string& regime);

}  // namespace tilewright

#endif  // TILEWRIGHT_SEARCH_STARTS_H_
