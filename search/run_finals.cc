#include "search/run_finals.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "schedule/library_product.h"
#include "schedule/schedule.h"
#include "search/run_pace.h"

namespace tilewright {
namespace {

bool IsLibraryText(const std::string& text) {
  const absl::StatusOr<Schedule> schedule = ParseSchedule(text);
  return schedule.ok() && IsLibrary(*schedule);
}

constexpr int kShortIdleMs = 20;
constexpr int kNoLimit = std::numeric_limits<int>::max();

absl::Duration ShortIdle(const FinalsRules& rules) {
  return absl::Milliseconds(std::min(kShortIdleMs, rules.idle_ms));
}

class Finals {
 public:
  Finals(const FinalsField& field, const FinalsRules& rules, const FinalsCalls& calls)
      : field_(field), rules_(rules), calls_(calls), burst_(field.burst), opening_(field.opening) {}

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
    FinalsOutcome outcome{.library = *std::move(library)};
    const int count = static_cast<int>(entrants->size());
    outcome.rounds = DecidingRounds(count);
    outcome.idle_ms = DecidingIdleMs(count * outcome.rounds);
    absl::StatusOr<std::vector<Entrant>> deciding =
        HoldRounds(*entrants, outcome.rounds, outcome.idle_ms, field_.seed + 1,
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
  absl::Duration Left() const { return field_.by - calls_.now() - kSlack * opening_; }

  // How many schedules' bursts surely fit into `time`, `rounds` of each.
  int Fit(absl::Duration time, int rounds, absl::Duration idle) const {
    if (time == absl::InfiniteDuration()) return kNoLimit;
    const absl::Duration each = rounds * (idle + kSlack * burst_);
    if (each <= absl::ZeroDuration()) return kNoLimit;
    return static_cast<int>(std::max(0.0, std::min(1e6, absl::FDivDuration(time, each))));
  }

  absl::Duration Least() const {
    return LeastTimeOfFinals(rules_, kSlack * burst_,
                             LeastEntrants(field_.anchor, field_.default_schedule));
  }

  // Beside anchor and default.
  int MostFinalists() const {
    const int entrants = Fit(Left(), rules_.deciding_rounds, absl::Milliseconds(rules_.idle_ms));
    const int others = LeastEntrants(field_.anchor, field_.default_schedule) - 1;
    return std::clamp(entrants - others, 1, rules_.finalists);
  }

  int MostQualifiers() const {
    const int qualifiers = Fit((Left() - Least()) / 2, rules_.qualifying_rounds,
                               absl::Milliseconds(rules_.qualifying_idle_ms));
    return std::min(qualifiers, rules_.most_qualifiers);
  }

  int DecidingRounds(int entrants) const {
    const int rounds = Fit(Left(), entrants, ShortIdle(rules_));
    return std::clamp(rounds, std::min(rules_.least_rounds, rules_.deciding_rounds),
                      rules_.deciding_rounds);
  }

  int DecidingIdleMs(int bursts) const {
    const absl::Duration left = Left();
    if (left == absl::InfiniteDuration()) return rules_.idle_ms;
    const absl::Duration idle = left / bursts - kSlack * burst_;
    return static_cast<int>(absl::ToInt64Milliseconds(
        std::clamp(idle, ShortIdle(rules_), absl::Milliseconds(rules_.idle_ms))));
  }

  // The finalists beside anchor and default.
  absl::StatusOr<std::vector<std::string>> Qualify() {
    FinalsRules rules = rules_;
    rules.finalists = MostFinalists();
    rules.most_qualifiers = std::max(MostQualifiers(), rules.finalists);
    std::vector<std::string> chosen = ChooseQualifiers(field_.costs, field_.anchor, rules);
    if (static_cast<int>(chosen.size()) <= rules.finalists) return chosen;
    v1::FinalsResult raw;
    absl::StatusOr<std::vector<Entrant>> qualifying =
        HoldRounds(chosen, rules.qualifying_rounds, rules.qualifying_idle_ms, field_.seed,
                   FinalsStage::kQualifying, &raw);
    if (!qualifying.ok()) return qualifying.status();
    rules.finalists = MostFinalists();
    return ChooseFinalists(*qualifying, rules);
  }

  // The library's best algorithm in two short rounds, "" if none runs. Its algorithms differ by
  // much more than such rounds scatter, so they need no long idles.
  absl::StatusOr<std::string> ChooseLibrary() {
    if (field_.library_algorithms.empty()) return std::string();
    // The best of them then takes part in the deciding rounds.
    const absl::Duration its_rounds = LeastTimeOfFinals(rules_, kSlack * burst_, 1);
    if (Fit(Left() - Least() - its_rounds, rules_.qualifying_rounds, ShortIdle(rules_)) <
        static_cast<int>(field_.library_algorithms.size())) {
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
    const absl::Time began = calls_.now();
    absl::StatusOr<v1::FinalsResult> result = calls_.hold(finals, stage);
    if (!result.ok()) return result.status();
    const int bursts = rounds * static_cast<int>(schedules.size());
    const absl::Duration took = calls_.now() - began - opening_;
    burst_ = std::max(took / bursts - absl::Milliseconds(idle_ms), absl::ZeroDuration());
    opening_ = absl::ZeroDuration();
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
  const FinalsRules rules_;
  const FinalsCalls& calls_;
  absl::Duration burst_;         // beside its idle, as the last rounds were
  absl::Duration opening_;       // zero: the session is open
  std::string library_failure_;  // of an algorithm, the last
};

}  // namespace

absl::Duration TimeOfFinals(const FinalsRules& rules, absl::Duration burst) {
  return rules.most_qualifiers * rules.qualifying_rounds *
             (absl::Milliseconds(rules.qualifying_idle_ms) + burst) +
         (rules.finalists + 2) * rules.deciding_rounds *
             (absl::Milliseconds(rules.idle_ms) + burst);
}

absl::Duration LeastTimeOfFinals(const FinalsRules& rules, absl::Duration burst, int entrants) {
  const int rounds = std::min(rules.least_rounds, rules.deciding_rounds);
  return entrants * rounds * (ShortIdle(rules) + burst);
}

int LeastEntrants(const std::string& anchor, const std::string& default_schedule) {
  return anchor == default_schedule ? kMostLeastEntrants - 1 : kMostLeastEntrants;
}

absl::StatusOr<FinalsOutcome> HoldFinals(const FinalsField& field, const FinalsRules& rules,
                                         const FinalsCalls& calls) {
  return Finals(field, rules, calls).Hold();
}

}  // namespace tilewright
