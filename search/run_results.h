// What the committed trials of one run come to: counts, costs, the best one, and whether there is
// hope. Filled by the tuner's loop in commit order; read by its progress, finals and report.
//
//   RunResults results(space.DefaultSchedule().ToString());
//   search->Commit(results.Add(FactsOf(trial), index));
//   if (absl::Status hope = results.CheckHope(); !hope.ok()) …
//
// Not thread-safe; the tuner's thread owns it.
#ifndef TILEWRIGHT_SEARCH_RUN_RESULTS_H_
#define TILEWRIGHT_SEARCH_RUN_RESULTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "db/rows.h"
#include "measure/measure.pb.h"
#include "search/search_state.h"

namespace tilewright {

// What a run learns from a trial, whether it comes over the wire or from the log.
struct TrialFacts {
  std::string schedule;
  std::optional<double> seconds;  // absent: it failed
  std::optional<double> anchor_seconds;
  std::string failure_kind;
  std::string failure_text;
  std::string session;  // id in bytes
};
TrialFacts FactsOf(const v1::TrialResult& trial);
TrialFacts FactsOf(const TrialRow& trial);

class RunResults {
 public:
  explicit RunResults(std::string default_schedule)
      : default_schedule_(std::move(default_schedule)) {}

  // Counts the next trial. Returns what the search learns from it; `index` is its schedule's.
  Result Add(const TrialFacts& trial, absl::uint128 index);
  // FailedPrecondition, with the first failure: twenty failures of one kind in a row without a
  // success before, the default's among them, mean that the workload itself is in trouble.
  absl::Status CheckHope() const;

  int64_t trials() const { return trials_; }
  const std::map<std::string, int64_t>& failures() const { return failures_; }  // by kind
  const std::string& first_failure() const { return first_failure_; }           // kind and text
  // Cost (seconds / anchor seconds) and schedule of each trial that has both times, in commit
  // order.
  const std::vector<std::pair<double, std::string>>& costs() const { return costs_; }
  // The schedule of the least cost. Null: no trial has one. Valid until the next Add.
  const std::string* best() const { return best_ < 0 ? nullptr : &costs_[best_].second; }
  // The screened time of a schedule among costs().
  std::optional<double> Seconds(const std::string& schedule) const;

 private:
  const std::string default_schedule_;
  int64_t trials_ = 0;
  std::map<std::string, int64_t> failures_;
  std::string first_failure_;
  std::vector<std::pair<double, std::string>> costs_;
  int best_ = -1;  // in costs_
  absl::flat_hash_map<std::string, double> seconds_;
  std::string last_failure_kind_;
  int in_a_row_ = 0;  // failures of the last kind
  bool default_failed_ = false;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_SEARCH_RUN_RESULTS_H_
