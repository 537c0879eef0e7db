// Chooses a strategy's parameters on recorded spaces without fitting them to one: leave one kernel
// out.
//
//   search_parameters STRATEGY SETTINGS SEEDS FILE… -- PARAMETER=VALUE,VALUE,… …
//
// Draws SETTINGS combinations of the listed values (the defaults are the first), runs each with
// SEEDS seeds of 400 evaluations on every file, and scores it by Pcal, averaged over the files of
// one kernel first, so that a kernel recorded on two devices counts once. Then, for each kernel,
// the setting that is best on the others is scored on it: what the choice is worth on a kernel that
// it has not seen. Last, the best settings on all kernels, for search/strategies.cc.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "search/model_surrogate.h"
#include "search/score.h"
#include "search/simulate.h"

namespace tilewright {
namespace {

constexpr int kEvaluations = 400;
// Apart from those that anybody compares strategies with.
constexpr uint64_t kFirstSeed = 1000001;

struct Setting {
  StrategyChoice choice;
  std::string text;
  std::map<std::string, double> pcal;  // by kernel
  std::map<std::string, double> p;
};

struct Varied {
  std::string name;
  std::vector<double> values;
};

int Fail(const std::string& message) {
  std::fprintf(stderr, "search_parameters: %s\n", message.c_str());
  return 2;
}

std::vector<Setting> DrawSettings(const StrategyChoice& defaults, absl::Span<const Varied> varied,
                                  int count) {
  std::mt19937_64 random(1);
  std::vector<Setting> settings = {{defaults, "defaults", {}, {}}};
  // Fewer if there are fewer combinations.
  for (int attempt = 0; attempt < 20 * count && static_cast<int>(settings.size()) < count;
       ++attempt) {
    Setting setting{defaults, "", {}, {}};
    std::vector<std::string> words;
    for (const Varied& parameter : varied) {
      const double value = parameter.values[absl::Uint128Low64(
          UniformIndex(random, absl::uint128(parameter.values.size())))];
      setting.choice.parameters[parameter.name] = value;
      words.push_back(absl::StrCat(parameter.name, "=", value));
    }
    setting.text = absl::StrJoin(words, " ");
    const bool known = std::any_of(settings.begin(), settings.end(), [&](const Setting& other) {
      return other.choice.parameters == setting.choice.parameters;
    });
    if (!known) settings.push_back(std::move(setting));
  }
  return settings;
}

double MeanWithout(const std::map<std::string, double>& scores, const std::string& left_out) {
  double sum = 0;
  int count = 0;
  for (const auto& [kernel, score] : scores) {
    if (kernel == left_out) continue;
    sum += score;
    ++count;
  }
  return sum / count;
}

void Report(std::vector<Setting> settings) {
  double mean = 0;
  const size_t kernels = settings[0].pcal.size();
  for (const auto& [kernel, unused] : settings[0].pcal) {
    const auto best =
        std::max_element(settings.begin(), settings.end(), [&](const Setting& a, const Setting& b) {
          return MeanWithout(a.pcal, kernel) < MeanWithout(b.pcal, kernel);
        });
    std::printf("%s left out: {%s} scores Pcal %.3f P %.3f on it (defaults %.3f %.3f)\n",
                kernel.c_str(), best->text.c_str(), best->pcal.at(kernel), best->p.at(kernel),
                settings[0].pcal.at(kernel), settings[0].p.at(kernel));
    mean += best->pcal.at(kernel) / static_cast<double>(kernels);
  }
  std::printf("mean Pcal on kernels left out %.3f, of the defaults %.3f\n\n", mean,
              MeanWithout(settings[0].pcal, ""));
  std::stable_sort(settings.begin(), settings.end(), [](const Setting& a, const Setting& b) {
    return MeanWithout(a.pcal, "") > MeanWithout(b.pcal, "");
  });
  for (size_t i = 0; i < settings.size(); ++i) {
    if (i >= 10 && settings[i].text != "defaults") continue;
    std::printf("Pcal %.3f P %.3f ", MeanWithout(settings[i].pcal, ""),
                MeanWithout(settings[i].p, ""));
    for (const auto& [kernel, pcal] : settings[i].pcal)
      std::printf(" %s %.3f", kernel.c_str(), pcal);
    std::printf("  {%s}\n", settings[i].text.c_str());
  }
}

int Run(int argc, char** argv) {
  if (argc < 6) return Fail("expected STRATEGY SETTINGS SEEDS FILE… -- PARAMETER=VALUE,VALUE,… …");
  const absl::StatusOr<StrategyChoice> defaults = ParseStrategy(argv[1]);
  if (!defaults.ok()) return Fail(std::string(defaults.status().message()));
  int i = 4;
  std::vector<RecordedFile> files;
  for (; i < argc && std::string(argv[i]) != "--"; ++i) {
    absl::StatusOr<RecordedFile> file = ReadRecordedFile(argv[i], {});
    if (!file.ok()) return Fail(std::string(file.status().message()));
    files.push_back(*std::move(file));
  }
  std::vector<Varied> varied;
  for (++i; i < argc; ++i) {
    const std::vector<std::string> parts = absl::StrSplit(argv[i], '=');
    Varied parameter{parts[0], {}};
    if (!defaults->parameters.contains(parts[0]) || parts.size() != 2)
      return Fail(absl::StrCat(argv[i], " is not PARAMETER=VALUE,… of the strategy"));
    for (absl::string_view word : absl::StrSplit(parts[1], ',')) {
      double value = 0;
      if (!absl::SimpleAtod(word, &value)) return Fail(absl::StrCat(word, " is no number"));
      parameter.values.push_back(value);
    }
    varied.push_back(std::move(parameter));
  }
  std::vector<Setting> settings = DrawSettings(*defaults, varied, std::atoi(argv[2]));
  std::map<std::string, int> files_of_kernel;
  for (const RecordedFile& file : files) ++files_of_kernel[file.kernel];
  for (Setting& setting : settings) {
    for (const RecordedFile& file : files) {
      SimulateOptions options{
          .trials = kEvaluations, .seeds = std::atoi(argv[3]), .first_seed = kFirstSeed};
      options.make_surrogate = [](const RecordedSpace& space, uint64_t seed) {
        return NewDecisionSurrogate(&space, seed, "xgboost");
      };
      const absl::StatusOr<std::vector<SimulatedRun>> runs =
          Simulate(*file.space, setting.choice, options);
      if (!runs.ok()) return Fail(std::string(runs.status().message()));
      const absl::StatusOr<std::vector<StrategyScore>> scores =
          ScoreRuns(*file.space, {RunsOf(argv[1], *runs)});
      if (!scores.ok()) return Fail(std::string(scores.status().message()));
      setting.pcal[file.kernel] += scores->front().pcal / files_of_kernel[file.kernel];
      setting.p[file.kernel] += scores->front().p / files_of_kernel[file.kernel];
    }
  }
  Report(std::move(settings));
  return 0;
}

}  // namespace
}  // namespace tilewright

int main(int argc, char** argv) { return tilewright::Run(argc, argv); }
