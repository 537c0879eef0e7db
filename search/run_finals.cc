#include "search/run_finals.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "schedule/library_product.h"
#include "schedule/schedule.h"

namespace tilewright {
namespace {

bool IsLibraryText(const std::string& text) {
  const absl::StatusOr<Schedule> schedule = ParseSchedule(text);
  return schedule.ok() && IsLibrary(*schedule);
}

// Building, checking and timing, beside the idle.
constexpr absl::Duration kBurst = absl::Milliseconds(100);
constexpr int kShortIdleMs = 20;

absl::Duration TimeOfQualifying(const FinalsRules& rules) {
  return rules.most_qualifiers * rules.qualifying_rounds *
         (absl::Milliseconds(rules.qualifying_idle_ms) + kBurst);
}

bool FitWhole(const FinalsRules& rules, absl::Duration time_left) {
  return time_left >= TimeOfFinals(rules) - TimeOfQualifying(rules) / 2;
}

// What of `rules` fits into `time_left`: one finalist, short idles.
FinalsRules Shortened(FinalsRules rules, absl::Duration time_left) {
  rules.finalists = 1;
  rules.most_qualifiers = 1;
  const absl::Duration share = time_left / ((rules.finalists + 2) * rules.deciding_rounds);
  const int64_t idle_ms = absl::ToInt64Milliseconds(share - kBurst);
  rules.idle_ms = static_cast<int>(
      std::clamp<int64_t>(idle_ms, std::min(kShortIdleMs, rules.idle_ms), rules.idle_ms));
  return rules;
}

class Finals {
 public:
  Finals(const FinalsField& field, const FinalsRules& rules, const FinalsCalls& calls)
      : field_(field),
        in_haste_(!FitWhole(rules, field.time_left)),
        rules_(in_haste_ ? Shortened(rules, field.time_left) : rules),
        calls_(calls) {}

  absl::StatusOr<FinalsOutcome> Hold() {
    absl::StatusOr<std::vector<std::string>> entrants = Qualify();
    if (!entrants.ok()) return entrants.status();
    calls_.ended(FinalsStage::kQualifying);
    for (const std::string& schedule : {field_.anchor, field_.default_schedule}) {
      if (std::find(entrants->begin(), entrants->end(), schedule) == entrants->end())
        entrants->push_back(schedule);
    }
    absl::StatusOr<std::string> library = ChooseLibrary();
    if (!library.ok()) return library.status();
    if (!library->empty()) entrants->push_back(*library);
    calls_.ended(FinalsStage::kLibrary);
    FinalsOutcome outcome{.library = *std::move(library), .idle_ms = rules_.idle_ms};
    absl::StatusOr<std::vector<Entrant>> deciding =
        HoldRounds(*entrants, rules_.deciding_rounds, rules_.idle_ms, field_.seed + 1,
                   FinalsStage::kDeciding, &outcome.raw);
    calls_.ended(FinalsStage::kDeciding);
    if (!deciding.ok()) return deciding.status();
    std::vector<Entrant> own;
    for (const Entrant& entrant : *deciding) {
      if (entrant.schedule != outcome.library) own.push_back(entrant);
    }
    absl::StatusOr<FinalsDecision> decision = Decide(own, field_.anchor);
    if (!decision.ok()) return decision.status();
    outcome.decision = *std::move(decision);
    outcome.deciding = *std::move(deciding);
    return outcome;
  }

 private:
  // The finalists beside anchor and default.
  absl::StatusOr<std::vector<std::string>> Qualify() {
    std::vector<std::string> finalists = ChooseQualifiers(field_.costs, field_.anchor, rules_);
    if (static_cast<int>(finalists.size()) <= rules_.finalists) return finalists;
    v1::FinalsResult raw;
    absl::StatusOr<std::vector<Entrant>> qualifying =
        HoldRounds(finalists, rules_.qualifying_rounds, rules_.qualifying_idle_ms, field_.seed,
                   FinalsStage::kQualifying, &raw);
    if (!qualifying.ok()) return qualifying.status();
    return ChooseFinalists(*qualifying, rules_);
  }

  // The library's best algorithm in two short rounds, "" if none runs. Its algorithms differ by
  // much more than such rounds scatter, so they need no long idles.
  absl::StatusOr<std::string> ChooseLibrary() {
    if (field_.library_algorithms.empty()) return std::string();
    if (in_haste_) {
      calls_.warn("the library does not compete: the time limit leaves no time for it");
      return std::string();
    }
    v1::FinalsResult raw;
    FinalsRules one = rules_;
    one.finalists = 1;
    const absl::StatusOr<std::vector<Entrant>> rounds =
        HoldRounds(field_.library_algorithms, one.qualifying_rounds, kShortIdleMs, field_.seed + 2,
                   FinalsStage::kLibrary, &raw);
    if (!rounds.ok()) return rounds.status();
    const std::vector<std::string> best = ChooseFinalists(*rounds, one);
    if (!best.empty()) return best[0];
    calls_.warn(absl::StrCat("the library does not compete: ", library_failure_));
    return std::string();
  }

  absl::StatusOr<std::vector<Entrant>> HoldRounds(const std::vector<std::string>& schedules,
                                                  int rounds, int idle_ms, uint64_t order_seed,
                                                  FinalsStage stage, v1::FinalsResult* raw) {
    v1::Finals finals;
    for (const std::string& schedule : schedules) finals.add_schedules(schedule);
    finals.set_rounds(rounds);
    finals.set_idle_ms(idle_ms);
    finals.set_order_seed(order_seed);
    absl::StatusOr<v1::FinalsResult> result = calls_.hold(finals, stage);
    if (!result.ok()) return result.status();
    *raw = *std::move(result);
    if (raw->has_failure()) {
      return absl::UnavailableError(
          absl::StrCat("finals failed: ", raw->failure().kind(), ": ", raw->failure().text()));
    }
    std::vector<Entrant> entrants;
    for (const v1::FinalsResult::Entrant& entrant : raw->entrants()) {
      Entrant e{.schedule = entrant.schedule()};
      if (entrant.has_failure() && IsLibraryText(entrant.schedule())) {
        library_failure_ = entrant.failure().text();
      } else if (entrant.has_failure()) {
        calls_.warn(absl::StrCat(entrant.schedule(), " failed in the finals: ",
                                 entrant.failure().kind(), ": ", entrant.failure().text()));
      } else {
        e.round_seconds.assign(entrant.round_seconds().begin(), entrant.round_seconds().end());
      }
      entrants.push_back(std::move(e));
    }
    return entrants;
  }

  const FinalsField& field_;
  const bool in_haste_;
  const FinalsRules rules_;
  const FinalsCalls& calls_;
  std::string library_failure_;  // of an algorithm, the last
};

}  // namespace

absl::Duration TimeOfFinals(const FinalsRules& rules) {
  return TimeOfQualifying(rules) + (rules.finalists + 2) * rules.deciding_rounds *
                                       (absl::Milliseconds(rules.idle_ms) + kBurst);
}

absl::StatusOr<FinalsOutcome> HoldFinals(const FinalsField& field, const FinalsRules& rules,
                                         const FinalsCalls& calls) {
  return Finals(field, rules, calls).Hold();
}

}  // namespace tilewright
