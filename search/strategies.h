// The factories behind the rows of strategies.cc.
#ifndef TILEWRIGHT_SEARCH_STRATEGIES_H_
#define TILEWRIGHT_SEARCH_STRATEGIES_H_

#include <memory>

#include "search/strategy.h"

namespace tilewright {

// Uniform over the space, after the starts.
std::unique_ptr<Strategy> NewRandomSearch(const StrategyContext& context);
// Mutates and crosses the best measured schedules and lets the surrogate choose among the
// offspring.
std::unique_ptr<Strategy> NewEvolutionarySearch(const StrategyContext& context);

}  // namespace tilewright

#endif  // TILEWRIGHT_SEARCH_STRATEGIES_H_
