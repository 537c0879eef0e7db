// Lists of products for bench/gemm_suite.sh, and the tables made of what tuning them gave.
//
//   gemm_suite shapes FILE.csv [TYPES]      lines of name,m,n,k,… as a workload file
//   gemm_suite random SEED COUNT            products of log-uniform sizes as a workload file
//   gemm_suite table FILE.tw PLAIN.json [DEPENDENT.json]   Markdown of `tune --json` reports
//   gemm_suite converge FILE.tw LOG.jsonl   how soon an exported log's runs came near their best
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "schedule/workload_file.h"

namespace tilewright {
namespace {

using nlohmann::json;

constexpr double kSlower = 0.98;         // an interval wholly below it
constexpr double kFarBelow = 0.9;        // what no random shape may be
constexpr int64_t kFewRows = 128;        // decode
constexpr double kNear = 1.03;           // of the best, for convergence
constexpr int64_t kLargestSize = 16384;  // of random products
constexpr double kMostOperations = 0x1p42;

int Die(const std::string& message) {
  std::fprintf(stderr, "gemm_suite: %s\n", message.c_str());
  return 2;
}

void PrintProduct(const std::string& name, int64_t m, int64_t n, int64_t k,
                  const std::string& types) {
  std::printf("%s x1 'C[m,n] = sum(k: A[m,k] * B[n,k])' m=%lld n=%lld k=%lld %s\n", name.c_str(),
              static_cast<long long>(m), static_cast<long long>(n), static_cast<long long>(k),
              types.c_str());
}

int PrintShapes(const std::string& path, const std::string& types) {
  std::ifstream file(path);
  if (!file) return Die(path + ": cannot be read");
  std::string line;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#') continue;
    const std::vector<std::string> fields = absl::StrSplit(line, ',');
    if (fields.size() < 4) return Die(absl::StrCat(path, ": `", line, "` is not name,m,n,k"));
    PrintProduct(fields[0], std::atoll(fields[1].c_str()), std::atoll(fields[2].c_str()),
                 std::atoll(fields[3].c_str()), types);
  }
  return 0;
}

// m, n and k log-uniform in 1 … kLargestSize, drawn again until 2mnk fits.
int PrintRandom(uint64_t seed, int count) {
  std::mt19937_64 random(seed);
  const auto draw = [&] {
    const double uniform = static_cast<double>(random() >> 11) * 0x1p-53;
    return static_cast<int64_t>(std::exp(uniform * std::log(kLargestSize + 1.0)));
  };
  for (int i = 0; i < count;) {
    const int64_t m = draw();
    const int64_t n = draw();
    const int64_t k = draw();
    if (2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) >
        kMostOperations)
      continue;
    PrintProduct(absl::StrFormat("random_%02d", ++i), m, n, k, "bf16");
  }
  return 0;
}

// ---- Reports

struct Report {
  std::optional<double> first, best, library;  // seconds; first: the default's
  std::optional<double> ratio, low, high;      // the library's time over ours
  int rounds = 0;
  int64_t trials = 0;
  double elapsed = 0;
  double per_trial = 0;  // wall seconds of a screening trial
  double utilisation = 0;
  std::string winner;
  std::string warning;
  std::map<std::string, double> phases;
  std::map<std::string, int64_t> failures;
};

// By workload key. Lines that are no reports (errors of workloads) are left out.
std::map<std::string, Report> ReadReports(const std::string& path) {
  std::map<std::string, Report> reports;
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    const json row = json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!row.is_object() || !row.contains("workload")) continue;
    Report report;
    for (const json& entry : row["rows"]) {
      if (!entry.contains("seconds")) continue;
      const double seconds = entry["seconds"];
      const std::string label = entry["label"];
      if (label == "default") report.first = seconds;
      if (label == "best") {
        report.best = seconds;
        report.winner = entry["schedule"];
      }
      if (label == "library") report.library = seconds;
    }
    if (row.contains("against_library")) {
      const json& against = row["against_library"];
      report.ratio = against["ratio"];
      report.low = against["ratio_low"];
      report.high = against["ratio_high"];
      report.rounds = against["rounds"];
    }
    report.trials = row["trials"];
    report.elapsed = row["elapsed_seconds"];
    report.utilisation = row["utilisation"];
    report.failures = row["failures"].get<std::map<std::string, int64_t>>();
    if (row.contains("phases")) report.phases = row["phases"].get<std::map<std::string, double>>();
    if (report.trials > 1 && report.phases.contains("screening"))
      report.per_trial = report.phases["screening"] / static_cast<double>(report.trials);
    if (!row["warnings"].empty()) report.warning = row["warnings"][0];
    reports[row["workload"]] = std::move(report);
  }
  return reports;
}

struct Named {
  NamedWorkload named;
  int64_t m = 0, n = 0, k = 0;  // of the indices of these names; 0: there is none
};

absl::StatusOr<std::vector<Named>> ReadNames(const std::string& path) {
  absl::StatusOr<std::vector<NamedWorkload>> workloads = ReadWorkloadFile(path);
  if (!workloads.ok()) return workloads.status();
  std::vector<Named> names;
  for (NamedWorkload& named : *workloads) {
    const Sizes sizes = named.workload.HighestSizes();
    const auto size_of = [&](const char* name) -> int64_t {
      for (size_t i = 0; i < named.names.indices.size(); ++i) {
        if (named.names.indices[i] == name) return sizes[i];
      }
      return 0;
    };
    const int64_t m = size_of("m");
    const int64_t n = size_of("n");
    const int64_t k = size_of("k");
    names.push_back({std::move(named), m, n, k});
  }
  return names;
}

std::string Micros(const std::optional<double>& seconds) {
  return seconds ? absl::StrFormat("%.4g", *seconds * 1e6) : "-";
}

std::string RatioText(const Report* report) {
  if (report == nullptr) return "-";
  if (report->ratio)
    return absl::StrFormat("%.3f (%.3f-%.3f)", *report->ratio, *report->low, *report->high);
  return report->library ? "-" : "no library";
}

// Geometric means of the ratios, of all products and of those of few rows.
class Means {
 public:
  void Add(const Named& named, const Report* report) {
    if (report == nullptr || !report->ratio) return;
    const double log = std::log(*report->ratio);
    all_.push_back(log);
    if (named.m <= kFewRows) few_.push_back(log);
    if (*report->high < kSlower) slower_.push_back(named.named.name);
    if (*report->ratio < kFarBelow) far_.push_back(named.named.name);
  }
  void Print(const char* regime) const {
    std::printf("%s: geometric mean of %zu ratios %.3f, of %zu with m <= %lld %.3f\n", regime,
                all_.size(), Mean(all_), few_.size(), static_cast<long long>(kFewRows), Mean(few_));
    std::printf("%s: interval wholly below %.2f: %s\n", regime, kSlower, List(slower_).c_str());
    std::printf("%s: below %.2f: %zu (%s)\n", regime, kFarBelow, far_.size(), List(far_).c_str());
  }

 private:
  static double Mean(const std::vector<double>& logs) {
    double sum = 0;
    for (double log : logs) sum += log;
    return logs.empty() ? std::nan("") : std::exp(sum / static_cast<double>(logs.size()));
  }
  static std::string List(const std::vector<std::string>& names) {
    return names.empty() ? "none" : absl::StrJoin(names, ", ");
  }
  std::vector<double> all_, few_;
  std::vector<std::string> slower_, far_;
};

int PrintTable(const std::string& names_path, const std::string& plain_path,
               const std::string& dependent_path) {
  const absl::StatusOr<std::vector<Named>> names = ReadNames(names_path);
  if (!names.ok()) return Die(std::string(names.status().message()));
  const std::map<std::string, Report> plain = ReadReports(plain_path);
  const std::map<std::string, Report> dependent =
      dependent_path.empty() ? std::map<std::string, Report>() : ReadReports(dependent_path);
  const auto find = [](const std::map<std::string, Report>& reports, const Named& named) {
    const auto found = reports.find(named.named.workload.key());
    return found == reports.end() ? nullptr : &found->second;
  };
  std::printf(
      "| shape | m | n | k | default us | best us | library us | plain ratio (95%%) |%s "
      "trials | s | winner |\n|---|---|---|---|---|---|---|---|%s---|---|---|\n",
      dependent.empty() ? "" : " dependent ratio (95%) |", dependent.empty() ? "" : "---|");
  Means of_plain, of_dependent, of_better;
  int measured = 0;
  int wrong = 0;
  double longest = 0;
  double slowest_trial = 0;
  double least_busy = 1;
  std::map<std::string, double> phases;
  for (const Named& named : *names) {
    const Report* p = find(plain, named);
    const Report* d = find(dependent, named);
    of_plain.Add(named, p);
    of_dependent.Add(named, d);
    const bool better = d != nullptr && d->ratio && named.m <= kFewRows &&
                        (p == nullptr || !p->ratio || *d->ratio > *p->ratio);
    of_better.Add(named, better ? d : p);
    const Report shown = p != nullptr ? *p : d != nullptr ? *d : Report();
    std::printf("| %s | %lld | %lld | %lld | %s | %s | %s | %s |", named.named.name.c_str(),
                static_cast<long long>(named.m), static_cast<long long>(named.n),
                static_cast<long long>(named.k), Micros(shown.first).c_str(),
                Micros(shown.best).c_str(), Micros(shown.library).c_str(), RatioText(p).c_str());
    if (!dependent.empty()) std::printf(" %s |", RatioText(d).c_str());
    std::printf(" %lld | %.1f | `%s` %s|\n", static_cast<long long>(shown.trials), shown.elapsed,
                shown.winner.c_str(), shown.warning.substr(0, 120).c_str());
    for (const Report* report : {p, d}) {
      if (report == nullptr) continue;
      measured += report->best.has_value();
      const auto failed = report->failures.find("wrong output");
      if (failed != report->failures.end()) wrong += static_cast<int>(failed->second);
      longest = std::max(longest, report->elapsed);
      slowest_trial = std::max(slowest_trial, report->per_trial);
      least_busy = std::min(least_busy, report->utilisation);
      for (const auto& [phase, seconds] : report->phases) phases[phase] += seconds;
    }
  }
  std::printf("\n");
  of_plain.Print("plain");
  if (!dependent.empty()) {
    of_dependent.Print("dependent");
    of_better.Print("plain, or the better of both for m <= 128");
  }
  std::printf(
      "%d workloads measured, %d trials with wrong output; longest %.1f s, slowest trial "
      "%.3f s, least share of time busy %.2f\n",
      measured, wrong, longest, slowest_trial, least_busy);
  for (const auto& [phase, seconds] : phases)
    std::printf("%s: %.2f s each; ", phase.c_str(), measured > 0 ? seconds / measured : 0);
  std::printf("\n");
  return 0;
}

// ---- Convergence

struct Run {
  std::string workload;
  int64_t started_ns = 0;
  std::vector<std::pair<int64_t, double>> trials;  // when, seconds
};

// The best so far of each run against the best that any run of its workload screened: a reading
// stands for a time within the noise of screening.
int PrintConvergence(const std::string& names_path, const std::string& log_path) {
  const absl::StatusOr<std::vector<Named>> names = ReadNames(names_path);
  if (!names.ok()) return Die(std::string(names.status().message()));
  std::map<std::string, Run> runs;
  std::map<std::string, double> best;
  std::ifstream file(log_path);
  if (!file) return Die(log_path + ": cannot be read");
  std::string line;
  while (std::getline(file, line)) {
    const json row = json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!row.is_object()) return Die(log_path + ": not an exported log");
    const std::string kind = row.value("kind", "");
    if (kind == "run") runs[row["id"]].started_ns = row["started_unix_ns"];
    if (kind != "trial" || !row.contains("seconds")) continue;
    Run& run = runs[row["run"]];
    run.workload = row["workload"];
    run.trials.emplace_back(row["created_unix_ns"].get<int64_t>(), row["seconds"].get<double>());
    auto [known, added] = best.emplace(run.workload, row["seconds"].get<double>());
    if (!added) known->second = std::min(known->second, row["seconds"].get<double>());
  }
  std::printf(
      "| shape | trials | run s | best us | first within 3%% of it s | trials by then | best "
      "at 10 s | 20 s | 30 s | 60 s |\n|---|---|---|---|---|---|---|---|---|---|\n");
  for (const Named& named : *names) {
    for (auto& [id, run] : runs) {
      if (run.workload != named.named.workload.key() || run.trials.empty()) continue;
      std::sort(run.trials.begin(), run.trials.end());
      const auto since = [&](int64_t when) {
        return static_cast<double>(when - run.started_ns) * 1e-9;
      };
      const double target = kNear * best[run.workload];
      double so_far = std::numeric_limits<double>::infinity();
      std::optional<double> near;
      size_t near_trials = 0;
      std::map<int, double> at = {{10, 0}, {20, 0}, {30, 0}, {60, 0}};
      for (size_t i = 0; i < run.trials.size(); ++i) {
        so_far = std::min(so_far, run.trials[i].second);
        const double time = since(run.trials[i].first);
        for (auto& [limit, seconds] : at) {
          if (time <= limit) seconds = so_far;
        }
        if (near || so_far > target) continue;
        near = time;
        near_trials = i + 1;
      }
      std::printf("| %s | %zu | %.1f | %.4g | %s | %zu |", named.named.name.c_str(),
                  run.trials.size(), since(run.trials.back().first), best[run.workload] * 1e6,
                  near ? absl::StrFormat("%.1f", *near).c_str() : "never", near_trials);
      for (const auto& [limit, seconds] : at)
        std::printf(" %s |", seconds > 0 ? absl::StrFormat("%.4g", seconds * 1e6).c_str() : "-");
      std::printf("\n");
    }
  }
  return 0;
}

}  // namespace

int Main(const std::vector<std::string>& words) {
  const auto word = [&](size_t i) { return i < words.size() ? words[i] : std::string(); };
  if (word(0) == "shapes" && words.size() >= 2)
    return PrintShapes(word(1), words.size() > 2 ? word(2) : "bf16");
  if (word(0) == "random" && words.size() == 3)
    return PrintRandom(std::strtoull(word(1).c_str(), nullptr, 10), std::atoi(word(2).c_str()));
  if (word(0) == "table" && words.size() >= 3) return PrintTable(word(1), word(2), word(3));
  if (word(0) == "converge" && words.size() == 3) return PrintConvergence(word(1), word(2));
  return Die(
      "accepted: shapes FILE.csv [TYPES] | random SEED COUNT | table FILE.tw PLAIN.json "
      "[DEPENDENT.json] | converge FILE.tw LOG.jsonl");
}

}  // namespace tilewright

int main(int argc, char** argv) {
  return tilewright::Main(std::vector<std::string>(argv + 1, argv + argc));
}
