// A Strategy decides which schedules of a space to measure next.
//
//   std::unique_ptr<Strategy> s = row.make({.space = &space, .seed = 7, .starts = {…}, .surrogate =
//   &surrogate}); while (budget) { for (index : s->Propose(16)) measure(index); for (result)
//   s->Observe(result); }
//
// A proposal is a pure function of the seed, the starts, the observations so far in order, and the
// surrogate's state at the call (itself a function of the observations it was trained on). That is
// what makes a run replayable: the tuner logs how many results stood behind each batch. Not
// thread-safe. Strategies see the Space interface only, so a space recorded in a file works too.
#ifndef TILEWRIGHT_SEARCH_STRATEGY_H_
#define TILEWRIGHT_SEARCH_STRATEGY_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "schedule/space.h"

namespace tilewright {

// One committed result.
struct Observation {
  absl::uint128 index = 0;
  bool ok = false;
  double cost = 0;  // seconds / the anchor's seconds in the same session; only if ok
};

// What a strategy may ask of the cost model.
class Surrogate {
 public:
  virtual ~Surrogate() = default;
  // One score per schedule; lower is predicted better. Scores of one call compare with each other
  // only. Before there is data the bound ranks. A schedule whose failure is predicted scores worse.
  virtual std::vector<double> Score(absl::Span<const absl::uint128> indices) = 0;
  // The bound of each schedule in seconds: what its plan's quantities would take at the device's
  // rates. Infinite where unknown.
  virtual std::vector<double> BoundSeconds(absl::Span<const absl::uint128> indices) = 0;
  // True once the scores come from measurements.
  virtual bool trained() const = 0;
};

class Strategy {
 public:
  virtual ~Strategy() = default;
  // Up to `count` schedules, none proposed before; fewer only if the space has no more.
  virtual std::vector<absl::uint128> Propose(int count) = 0;
  // Results in commit order. Results of schedules it did not propose (the anchor's, a start's) are
  // welcome.
  virtual void Observe(const Observation& observation) = 0;
};

struct StrategyContext {
  const Space* space = nullptr;
  uint64_t seed = 0;
  std::vector<absl::uint128> starts;  // proposed first, in this order
  // Good on another device, the best first: proposed early, in an order of the strategy's own.
  std::vector<absl::uint128> transferred;
  Surrogate* surrogate = nullptr;            // null: none
  std::map<std::string, double> parameters;  // overrides of the row's defaults
};

// What a parameter may be. A strategy does with any such value, in bounded time and memory.
struct ParameterRange {
  double least = 0;
  double most = 0;
  bool whole = false;
};

struct StrategyParameter {
  std::string name;
  double default_value;
  ParameterRange range;
  std::string help;
};

struct StrategyRow {
  std::string name;
  std::string help;
  std::vector<StrategyParameter> parameters;
  std::function<std::unique_ptr<Strategy>(const StrategyContext&)> make;
  // Takes the surrogate and orders what is transferred. If not, no surrogate is trained for it, and
  // what is transferred is added to its starts.
  bool guided = false;
};

// The only list (strategies.cc); CLI help and tests iterate over it.
absl::Span<const StrategyRow> AllStrategies();
// "evolutionary" or "evolutionary{elite=8 random_share=0.2}". InvalidArgument lists what exists, or
// what the parameter's range is.
struct StrategyChoice {
  const StrategyRow* row;
  std::map<std::string, double> parameters;  // every parameter of the row
};
absl::StatusOr<StrategyChoice> ParseStrategy(std::string_view text);

}  // namespace tilewright

#endif  // TILEWRIGHT_SEARCH_STRATEGY_H_
