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
// Every schedule once, spread evenly.
std::unique_ptr<Strategy> NewGridSearch(const StrategyContext& context);
// Walks to neighbours, to slower ones ever less often.
std::unique_ptr<Strategy> NewAnnealingSearch(const StrategyContext& context);
// Children of the best schedules measured.
std::unique_ptr<Strategy> NewGeneticSearch(const StrategyContext& context);
// Members of a population challenged by differences of others.
std::unique_ptr<Strategy> NewDifferentialSearch(const StrategyContext& context);
// Descent to a local optimum, kicked out of it.
std::unique_ptr<Strategy> NewLocalSearch(const StrategyContext& context);

}  // namespace tilewright

#endif  // TILEWRIGHT_SEARCH_STRATEGIES_H_
