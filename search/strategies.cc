#include "search/strategies.h"

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "search/strategy.h"

namespace tilewright {
namespace {

// Counts that no run outlasts are as good as endless.
constexpr ParameterRange kResults = {0, 1e6, true};
constexpr ParameterRange kPatience = {1, 1e6, true};
// A strategy holds so many, or does so much for one proposal.
constexpr ParameterRange kSome = {1, 1e4, true};
constexpr ParameterRange kSteps = {1, 100, true};  // of one walk from neighbour to neighbour
constexpr ParameterRange kPair = {2, 1e4, true};
constexpr ParameterRange kFour = {4, 1e4, true};
constexpr ParameterRange kPool = {1, 1e5, true};
constexpr ParameterRange kShare = {0, 1};
constexpr ParameterRange kFactor = {0, 1000};

std::string ToText(const ParameterRange& range) {
  return absl::StrFormat("%s from %.7g to %.7g", range.whole ? "a whole number" : "a number",
                         range.least, range.most);
}

// NaN is in no range.
bool Within(const ParameterRange& range, double value) {
  return value >= range.least && value <= range.most &&
         (!range.whole || value == std::floor(value));
}

}  // namespace

absl::Span<const StrategyRow> AllStrategies() {
  static const auto* rows = new std::vector<StrategyRow>{
      {"evolutionary",
       "mutates and crosses the best measured schedules; expected improvement and the cost model "
       "pick among the offspring",
       {{"initial", 6, kResults,
         "schedules measured before evolution starts, drawn from the variants by turns"},
        {"elite", 12, kSome, "best measured schedules that have offspring"},
        {"pool", 384, kPool, "offspring and fresh draws the models choose from, per plan"},
        {"fresh", 512, kPool, "fresh draws that expected improvement chooses from as well"},
        {"random_share", 0.03, kShare, "share of a batch drawn uniformly from the space"},
        {"model_share", 0.4, kShare,
         "share of a batch that the cost model's ranking fills, once trained"},
        {"replan", 0.0625, kShare,
         "share of the results so far after which the next batch is planned anew"},
        {"patience", 32, kPatience,
         "results without improvement after which the random share grows"}},
       NewEvolutionarySearch,
       true},
      {"random", "draws uniformly from the space", {}, NewRandomSearch},
      {"grid",
       "takes every schedule once, in an order spread evenly over the space",
       {},
       NewGridSearch},
      {"annealing",
       "walks to neighbouring schedules, to slower ones ever less often",
       {{"initial", 32, kResults, "schedules measured before the walk starts at their best"},
        {"chains", 1, kSome, "walks that take turns"},
        {"temperature", 0.4, kFactor, "initial temperature, in natural logarithms of the cost"},
        {"cooling", 0.9, kShare, "factor of the temperature per result"},
        {"patience", 32, kPatience,
         "results without a move after which a walk goes back to the best"}},
       NewAnnealingSearch},
      {"genetic",
       "crosses and mutates the best measured schedules",
       {{"initial", 32, kResults, "schedules measured before the first children"},
        {"population", 8, kPair, "best measured schedules that have children"},
        {"tournament", 4, kSome, "members of which the best becomes a parent"},
        {"mutation", 0.2, kShare, "chance that a child goes on to a neighbour"}},
       NewGeneticSearch},
      {"differential",
       "challenges each member of a population by differences of others",
       {{"population", 8, kFour, "members"},
        {"factor", 0.5, kShare, "chance that a differing decision is added to the donor"},
        {"crossover", 0.5, kShare, "chance that a decision comes from the donor"},
        {"greed", 1, kShare, "chance that the donor is the best member"}},
       NewDifferentialSearch},
      {"ils",
       "descends to a local optimum and is kicked out of it",
       {{"initial", 8, kResults, "schedules measured before the descent starts at their best"},
        {"tries", 40, kPatience, "neighbours in a row that are no faster before a kick"},
        {"kick", 3, kSteps, "changes of a kick"},
        {"elite", 8, kSome, "best schedules that are kicked"},
        {"tolerance", 1, kFactor,
         "a kick to a schedule at most this many times slower is accepted"}},
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
    if (found == choice.parameters.end() || !absl::SimpleAtod(pair.second, &value)) {
      std::vector<std::string> accepted;
      for (const StrategyParameter& p : choice.row->parameters) accepted.push_back(p.name);
      return absl::InvalidArgumentError(absl::StrCat(
          "strategy ", name, ": `", word, "` is not one of its parameters with a number; it has ",
          accepted.empty() ? "none" : absl::StrJoin(accepted, ", ")));
    }
    for (const StrategyParameter& parameter : choice.row->parameters) {
      if (parameter.name != pair.first || Within(parameter.range, value)) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "strategy ", name, ": `", word, "`: ", parameter.name, " is ", ToText(parameter.range)));
    }
    found->second = value;
  }
  return choice;
}

}  // namespace tilewright
