#include "search/strategies.h"

#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "search/strategy.h"

namespace tilewright {

absl::Span<const StrategyRow> AllStrategies() {
  static const auto* rows = new std::vector<StrategyRow>{
      {"evolutionary",
       "mutates and crosses the best measured schedules; expected improvement and the cost model "
       "pick among the offspring",
       {{"initial", 8, "schedules measured before evolution starts, variants in equal shares"},
        {"elite", 12, "best measured schedules that have offspring"},
        {"pool", 384, "offspring and fresh samples the model chooses from, per batch"},
        {"random_share", 0.03, "share of a batch drawn uniformly from the space"},
        {"model_share", 0.4, "share of a batch that the cost model's ranking fills, once trained"},
        {"replan", 0.0625,
         "share of the results so far after which the next batch is planned anew"},
        {"patience", 32, "results without improvement after which the random share grows"}},
       NewEvolutionarySearch,
       true},
      {"random", "draws uniformly from the space", {}, NewRandomSearch},
      {"grid",
       "takes every schedule once, in an order spread evenly over the space",
       {},
       NewGridSearch},
      {"annealing",
       "walks to neighbouring schedules, to slower ones ever less often",
       {{"initial", 32, "schedules measured before the walk starts at their best"},
        {"chains", 1, "walks that take turns"},
        {"temperature", 0.4, "initial temperature, in natural logarithms of the cost"},
        {"cooling", 0.9, "factor of the temperature per result"},
        {"patience", 32, "results without a move after which a walk goes back to the best"}},
       NewAnnealingSearch},
      {"genetic",
       "crosses and mutates the best measured schedules",
       {{"initial", 32, "schedules measured before the first children"},
        {"population", 8, "best measured schedules that have children"},
        {"tournament", 4, "members of which the best becomes a parent"},
        {"mutation", 0.2, "chance that a child goes on to a neighbour"}},
       NewGeneticSearch},
      {"differential",
       "challenges each member of a population by differences of others",
       {{"population", 8, "members"},
        {"factor", 0.5, "chance that a differing decision is added to the donor"},
        {"crossover", 0.5, "chance that a decision comes from the donor"},
        {"greed", 1, "chance that the donor is the best member"}},
       NewDifferentialSearch},
      {"ils",
       "descends to a local optimum and is kicked out of it",
       {{"initial", 8, "schedules measured before the descent starts at their best"},
        {"tries", 40, "neighbours in a row that are no faster before a kick"},
        {"kick", 3, "changes of a kick"},
        {"elite", 8, "best schedules that are kicked"},
        {"tolerance", 1, "a kick to a schedule at most this many times slower is accepted"}},
       NewLocalSearch},
  };
  return *rows;
}

absl::StatusOr<StrategyChoice> ParseStrategy(std::string_view strategy_text) {
  const absl::string_view text(strategy_text.data(), strategy_text.size());
  absl::string_view name = text;
  absl::string_view arguments;
  if (const size_t brace = text.find('{'); brace != absl::string_view::npos) {
    name = text.substr(0, brace);
    arguments = text.substr(brace + 1);
    if (!absl::ConsumeSuffix(&arguments, "}")) {
      return absl::InvalidArgumentError(
          absl::StrCat("strategy `", text, "`: `}` is missing at the end"));
    }
  }
  StrategyChoice choice{nullptr, {}};
  std::vector<std::string> known;
  for (const StrategyRow& row : AllStrategies()) {
    known.push_back(row.name);
    if (row.name == name) choice.row = &row;
  }
  if (choice.row == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown strategy `", name, "`; strategies are ", absl::StrJoin(known, ", ")));
  }
  for (const StrategyParameter& parameter : choice.row->parameters) {
    choice.parameters[parameter.name] = parameter.default_value;
  }
  for (absl::string_view word :
       absl::StrSplit(arguments, absl::ByAnyChar(" ,"), absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(word, absl::MaxSplits('=', 1));
    auto found = choice.parameters.find(std::string(pair.first));
    double value = 0;
    if (found == choice.parameters.end() || !absl::SimpleAtod(pair.second, &value) || value < 0) {
      std::vector<std::string> accepted;
      for (const StrategyParameter& p : choice.row->parameters) accepted.push_back(p.name);
      return absl::InvalidArgumentError(
          absl::StrCat("strategy ", name, ": `", word,
                       "` is not one of its parameters with a number >= 0; it has ",
                       accepted.empty() ? "none" : absl::StrJoin(accepted, ", ")));
    }
    found->second = value;
  }
  return choice;
}

}  // namespace tilewright
