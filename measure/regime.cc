#include "measure/regime.h"

#include <set>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace tilewright {
namespace {

// One word of a regime's text: its name and the values it accepts, in the order of the enum; the
// first is the default.
struct Word {
  std::string_view name;
  std::vector<std::string_view> values;
  void (*set)(Regime&, int);
  int (*get)(const Regime&);
};

const std::vector<Word>& Words() {
  static const auto* words = new std::vector<Word>{
      {"cache",
       {"cold", "warm"},
       [](Regime& r, int value) { r.cache = static_cast<Regime::Cache>(value); },
       [](const Regime& r) { return static_cast<int>(r.cache); }},
      {"chain",
       {"plain", "dependent"},
       [](Regime& r, int value) { r.chain = static_cast<Regime::Chain>(value); },
       [](const Regime& r) { return static_cast<int>(r.chain); }},
      {"data",
       {"normal"},
       [](Regime& r, int value) { r.data = static_cast<Regime::Data>(value); },
       [](const Regime& r) { return static_cast<int>(r.data); }},
  };
  return *words;
}

std::string Accepted() {
  std::vector<std::string> words;
  for (const Word& word : Words()) {
    std::string text = absl::StrCat(std::string(word.name), "=");
    for (size_t i = 0; i < word.values.size(); ++i) {
      absl::StrAppend(&text, i == 0 ? "" : "|", std::string(word.values[i]));
    }
    words.push_back(text);
  }
  words.push_back("at=INDEX:SIZE");
  return absl::StrJoin(words, " ");
}

// "t:8192,i:64": sizes of ranged indices by canonical name.
absl::Status ParseAt(std::string_view text, const Workload& workload, Sizes* at) {
  std::set<int> seen;
  for (absl::string_view part :
       absl::StrSplit(absl::string_view(text.data(), text.size()), ',', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(part, absl::MaxSplits(':', 1));
    int64_t size = 0;
    if (!absl::SimpleAtoi(pair.second, &size)) {
      return absl::InvalidArgumentError(
          absl::StrCat("regime: 'at=", part, "' is not INDEX:SIZE with an integer size"));
    }
    int index = -1;
    std::vector<std::string> ranged;
    for (size_t i = 0; i < workload.sizes().size(); ++i) {
      if (workload.sizes()[i].fixed()) continue;
      ranged.push_back(workload.program().indices[i]);
      if (workload.program().indices[i] == pair.first) index = static_cast<int>(i);
    }
    if (index < 0 || !seen.insert(index).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("regime: 'at=", part, "' must name each ranged index once; ranged are: ",
                       ranged.empty() ? "none" : absl::StrJoin(ranged, ", ")));
    }
    (*at)[index] = size;
  }
  return workload.CheckSizes(*at);
}

}  // namespace

std::string Regime::ToString(const Workload& workload) const {
  std::string text;
  for (const Word& word : Words()) {
    absl::StrAppend(&text, text.empty() ? "" : " ", std::string(word.name), "=",
                    std::string(word.values[word.get(*this)]));
  }
  std::vector<std::string> sizes;
  for (size_t i = 0; i < workload.sizes().size(); ++i) {
    if (workload.sizes()[i].fixed()) continue;
    sizes.push_back(absl::StrCat(workload.program().indices[i], ":", at[i]));
  }
  if (!sizes.empty()) absl::StrAppend(&text, " at=", absl::StrJoin(sizes, ","));
  return text;
}

absl::StatusOr<Regime> ParseRegime(std::string_view text, const Workload& workload) {
  Regime regime;
  regime.at = workload.HighestSizes();
  std::set<std::string, std::less<>> seen;
  for (absl::string_view part : absl::StrSplit(absl::string_view(text.data(), text.size()),
                                               absl::ByAnyChar(" \t"), absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    if (!seen.insert(std::string(pair.first)).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("regime: '", pair.first, "' is given twice; accepted: ", Accepted()));
    }
    if (pair.first == "at") {
      if (absl::Status status = ParseAt(std::string_view(pair.second.data(), pair.second.size()),
                                        workload, &regime.at);
          !status.ok()) {
        return status;
      }
      continue;
    }
    bool known = false;
    for (const Word& word : Words()) {
      if (std::string(word.name) != pair.first) continue;
      for (size_t i = 0; i < word.values.size(); ++i) {
        if (std::string(word.values[i]) != pair.second) continue;
        word.set(regime, static_cast<int>(i));
        known = true;
      }
    }
    if (!known) {
      return absl::InvalidArgumentError(
          absl::StrCat("regime: '", part, "' is unknown; accepted: ", Accepted()));
    }
  }
  return regime;
}

}  // namespace tilewright
