// Where a search begins: the schedule its times are relative to, and the schedules it proposes
// first.
#ifndef TILEWRIGHT_SEARCH_STARTS_H_
#define TILEWRIGHT_SEARCH_STARTS_H_

#include <cstdint>
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

// What is good on another device: the best 50 legal schedules among the trials of the same workload
// and regime on the other target that has most of them, the best first (by seconds / the anchor's
// seconds). Empty if this target had a trial of its own, which tells more. Reads the rows up to
// `through_row`, so that a resumed run finds what it began with.
absl::StatusOr<std::vector<absl::uint128>> FindTransferred(Database& log,
                                                           const ScheduleSpace& space,
                                                           const std::string& target_key,
                                                           const std::string& regime,
                                                           int64_t through_row);

}  // namespace tilewright

#endif  // TILEWRIGHT_SEARCH_STARTS_H_
