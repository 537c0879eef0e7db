#include "schedule/space_writer.h"

#include <utility>

namespace tilewright {

std::vector<int64_t> SpaceWriter::Reader::All(Numbers given) const {
  std::vector<int64_t> all = numbers;
  for (size_t i = 0; i < given_at.size(); ++i) all[given_at[i]] = given[i];
  return all;
}

SpaceWriter::Reader SpaceWriter::Resolve(const std::vector<std::string>& reads) const {
  Reader reader;
  for (const std::string& name : reads) {
    auto found = fixed_.find(name);
    if (found == fixed_.end()) {
      reader.given_at.push_back(reader.numbers.size());
      reader.names.push_back(name);
      reader.numbers.push_back(0);
    } else {
      reader.numbers.push_back(found->second);
    }
  }
  return reader;
}

void SpaceWriter::Decide(std::string name, std::string help, std::vector<DecisionValue> values,
                         const std::vector<std::string>& depends_on,
                         const std::function<bool(Numbers)>& present,
                         std::string value_of_older_texts) {
  Decision decision;
  decision.value_of_older_texts = std::move(value_of_older_texts);
  if (present) {
    Reader reader = Resolve(depends_on);
    if (!reader.names.empty()) {
      decision.depends_on = reader.names;
      decision.present = [reader, present](Numbers given) { return present(reader.All(given)); };
    } else if (!present(reader.numbers)) {
      fixed_[name] = kAbsent;
      return;
    }
  }
  if (values.size() == 1) {
    fixed_[name] = values[0].number;
    return;
  }
  decision.name = std::move(name);
  decision.help = std::move(help);
  decision.values = std::move(values);
  definition_.decisions.push_back(std::move(decision));
}

void SpaceWriter::Constrain(std::string name, const std::vector<std::string>& reads,
                            const std::function<bool(Numbers)>& holds,
                            const std::function<std::string(Numbers)>& explain) {
  Reader reader = Resolve(reads);
  if (reader.names.empty()) return;
  definition_.constraints.push_back({std::move(name),
                                     reader.names,
                                     [reader, holds](Numbers given, absl::Span<const int64_t>) {
                                       return holds(reader.All(given));
                                     },
                                     [reader, explain](Numbers given, absl::Span<const int64_t>) {
                                       return explain(reader.All(given));
                                     },
                                     {},
                                     {}});
}

std::map<std::string, int64_t> SpaceWriter::AllNumbers(Numbers numbers) const {
  std::map<std::string, int64_t> values = fixed_;
  for (size_t i = 0; i < definition_.decisions.size(); ++i)
    values[definition_.decisions[i].name] = numbers[i];
  return values;
}

Schedule SpaceWriter::ClosestTo(const std::map<std::string, int64_t>& wishes) const {
  Schedule schedule{definition_.variant, {}};
  std::map<std::string, int64_t> chosen = fixed_;
  for (const Decision& decision : definition_.decisions) {
    std::vector<int64_t> reads;
    for (const std::string& name : decision.depends_on) reads.push_back(chosen.at(name));
    if (decision.present && !decision.present(reads)) {
      chosen[decision.name] = kAbsent;
      continue;
    }
    const DecisionValue* best = &decision.values[0];
    for (const DecisionValue& value : decision.values) {
      if (value.number <= wishes.at(decision.name)) best = &value;
    }
    chosen[decision.name] = best->number;
    schedule.decisions.emplace_back(decision.name, best->token);
  }
  return schedule;
}

}  // namespace tilewright
