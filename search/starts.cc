#include "search/starts.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"

namespace tilewright {
namespace {

constexpr int kMostBorrowed = 6;
constexpr size_t kMostSuggested = 16;
// How many of another device's best schedules are measured here first. One alone is a gamble: what
// is best there may be far from it here, while among the best fifty there is a good one.
constexpr size_t kMostTransferred = 50;
constexpr int64_t kMostRead = 20000;  // trials of other devices

void AddOnce(const Schedule& schedule, std::vector<Schedule>* schedules) {
  if (std::find(schedules->begin(), schedules->end(), schedule) == schedules->end())
    schedules->push_back(schedule);
}

// The incumbent's schedule, if the log has one that is legal here.
absl::StatusOr<std::optional<Schedule>> FindIncumbent(Database& log, const ScheduleSpace& space,
                                                      const std::string& target_key,
                                                      const std::string& regime,
                                                      SearchStart* start) {
  const absl::StatusOr<BestAnswer> best = log.Best(space.workload().key(), target_key, regime);
  if (absl::IsNotFound(best.status())) return std::optional<Schedule>();
  if (!best.ok()) return best.status();
  for (const VerdictRow& verdict : best->verdicts) start->verdicts.push_back(verdict.id);
  if (!best->verdicts.empty()) {
    const VerdictRow& verdict = best->verdicts.front();
    return LegalSchedule(space, verdict.winner_schedule,
                         absl::StrCat("verdict ", verdict.id.ToHex()), &start->warnings);
  }
  if (!best->trial) return std::optional<Schedule>();
  return LegalSchedule(space, best->trial->schedule,
                       absl::StrCat("trial ", best->trial->id.ToHex()), &start->warnings);
}

}  // namespace

std::optional<Schedule> LegalSchedule(const ScheduleSpace& space, const std::string& text,
                                      const std::string& record,
                                      std::vector<std::string>* warnings) {
  absl::StatusOr<Schedule> schedule = ParseSchedule(text);
  absl::Status status = schedule.status();
  if (schedule.ok()) {
    status = space.space().IndexOf(*schedule).status();
    if (status.ok()) return *std::move(schedule);
  }
  warnings->push_back(absl::StrCat(record, " is not used: ", std::string(status.message())));
  return std::nullopt;
}

absl::StatusOr<SearchStart> FindSearchStart(Database* log, const ScheduleSpace& space,
                                            const std::string& target_key,
                                            const std::string& regime) {
  SearchStart start;
  std::optional<Schedule> incumbent;
  if (log != nullptr) {
    absl::StatusOr<std::optional<Schedule>> found =
        FindIncumbent(*log, space, target_key, regime, &start);
    if (!found.ok()) return found.status();
    incumbent = *std::move(found);
  }
  const Schedule default_schedule = space.DefaultSchedule();
  start.anchor_is_default = !incumbent || *incumbent == default_schedule;
  start.anchor = incumbent.value_or(default_schedule);
  AddOnce(start.anchor, &start.starts);
  AddOnce(default_schedule, &start.starts);
  for (const Schedule& schedule : space.Suggestions(kMostSuggested))
    AddOnce(schedule, &start.starts);
  if (log == nullptr) return start;
  absl::StatusOr<std::vector<VerdictRow>> others = log->QueryVerdicts({.limit = 256});
  if (!others.ok()) return others.status();
  int borrowed = 0;
  for (const VerdictRow& verdict : *others) {
    if (borrowed == kMostBorrowed) break;
    const absl::StatusOr<Schedule> schedule = ParseSchedule(verdict.winner_schedule);
    // Winners of other families and backends are illegal here: no cause for a warning.
    if (!schedule.ok() || !space.space().IndexOf(*schedule).ok()) continue;
    const size_t before = start.starts.size();
    AddOnce(*schedule, &start.starts);
    borrowed += start.starts.size() > before;
  }
  return start;
}

absl::StatusOr<std::vector<absl::uint128>> FindTransferred(Database& log,
                                                           const ScheduleSpace& space,
                                                           const std::string& target_key,
                                                           const std::string& regime,
                                                           int64_t through_row) {
  const absl::StatusOr<std::vector<TrialRow>> trials =
      log.QueryTrials({.workload_key = space.workload().key(),
                       .regime = regime,
                       .state = TrialFilter::State::kOk,
                       .through_row = through_row,
                       .order = TrialFilter::Order::kNewest,
                       .limit = kMostRead});
  if (!trials.ok()) return trials.status();
  std::map<std::string, std::vector<std::pair<double, const TrialRow*>>> by_target;
  for (const TrialRow& trial : *trials) {
    if (trial.target_key == target_key) return std::vector<absl::uint128>();
    if (trial.anchor_seconds)
      by_target[trial.target_key].emplace_back(*trial.seconds / *trial.anchor_seconds, &trial);
  }
  std::vector<std::pair<double, const TrialRow*>> most;
  for (auto& [key, of_target] : by_target) {
    if (of_target.size() > most.size()) most = std::move(of_target);
  }
  std::stable_sort(most.begin(), most.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<absl::uint128> transferred;
  for (const auto& [cost, trial] : most) {
    if (transferred.size() == kMostTransferred) break;
    const absl::StatusOr<Schedule> schedule = ParseSchedule(trial->schedule);
    if (!schedule.ok()) continue;
    // What another device can do may be illegal here: no cause for a warning.
    const absl::StatusOr<absl::uint128> index = space.space().IndexOf(*schedule);
    if (index.ok() && !absl::c_linear_search(transferred, *index)) transferred.push_back(*index);
  }
  return transferred;
}

}  // namespace tilewright
