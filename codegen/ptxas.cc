#include "codegen/ptxas.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <regex>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "codegen/compiler_child.h"

namespace tilewright {
namespace {

constexpr char kVariable[] = "TILEWRIGHT_PTXAS";
constexpr char kUsualPath[] = "/usr/local/cuda/bin/ptxas";
constexpr size_t kMostMessageBytes = 2000;

// "13.0.88" of "Cuda compilation tools, release 13.0, V13.0.88"; empty: it says none.
std::string VersionOf(const std::string& path) {
  const auto run = RunCompiler(path, {"--version"}, "", absl::Seconds(20));
  if (!run.ok() || run->exit_code != 0) return "";
  std::smatch match;
  static const std::regex* const kVersion = new std::regex("V([0-9]+\\.[0-9]+\\.[0-9]+)");
  return std::regex_search(run->log, match, *kVersion) ? match[1].str() : "";
}

absl::StatusOr<Ptxas> LookForPtxas() {
  if (const char* named = std::getenv(kVariable)) {
    const std::string path = named;
    if (path.empty()) return Ptxas{};
    const std::string version = VersionOf(path);
    if (version.empty()) {
      return absl::NotFoundError(
          absl::StrCat(kVariable, "=", path,
                       " is no ptxas; accepted: its path, or nothing to leave PTX to the driver"));
    }
    return Ptxas{path, version};
  }
  std::vector<std::string> paths;
  if (const char* search = std::getenv("PATH")) {
    for (absl::string_view directory : absl::StrSplit(search, ':', absl::SkipEmpty()))
      paths.push_back(absl::StrCat(directory, "/ptxas"));
  }
  paths.push_back(kUsualPath);
  for (const std::string& path : paths) {
    if (access(path.c_str(), X_OK) != 0) continue;
    const std::string version = VersionOf(path);
    if (!version.empty()) return Ptxas{path, version};
  }
  return Ptxas{};
}

// The first number before `unit` in a line: "0 bytes stack frame, 8 bytes spill stores".
int64_t NumberBefore(absl::string_view line, absl::string_view unit) {
  const size_t at = line.find(unit);
  if (at == absl::string_view::npos) return 0;
  size_t begin = at;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  int64_t number = 0;
  return absl::SimpleAtoi(line.substr(begin, at - begin), &number) ? number : 0;
}

// The error lines of a log, or all of it if there are none.
std::string ErrorLines(const std::string& log) {
  std::string text;
  for (absl::string_view line : absl::StrSplit(log, '\n', absl::SkipEmpty())) {
    if (absl::StrContains(line, "error") || absl::StrContains(line, "fatal"))
      absl::StrAppend(&text, text.empty() ? "" : "; ", line);
  }
  if (text.empty()) text = log;
  return text.substr(0, kMostMessageBytes);
}

}  // namespace

absl::StatusOr<Ptxas> FindPtxas() {
  static const auto* const kFound = new absl::StatusOr<Ptxas>(LookForPtxas());
  return *kFound;
}

PtxasReport ParsePtxasLog(std::string_view log_view) {
  const absl::string_view log(log_view.data(), log_view.size());
  static const std::regex* const kNumber = new std::regex("\\((C[0-9]+)\\)");
  PtxasReport report;
  auto keep = [](int64_t number, int64_t* largest) { *largest = std::max(*largest, number); };
  for (absl::string_view line : absl::StrSplit(log, '\n', absl::SkipEmpty())) {
    keep(NumberBefore(line, " registers"), &report.registers);
    keep(NumberBefore(line, " bytes stack frame"), &report.stack_bytes);
    keep(NumberBefore(line, " bytes spill stores") + NumberBefore(line, " bytes spill loads"),
         &report.spill_bytes);
    keep(NumberBefore(line, " bytes smem"), &report.shared_bytes);
    const std::string text(line);
    std::smatch match;
    if (std::regex_search(text, match, *kNumber)) report.advisories.emplace_back(match[1], text);
  }
  return report;
}

absl::Status CheckPtxasReport(const PtxasReport& report, bool allow_spills) {
  for (const auto& [number, line] : report.advisories) {
    if (absl::StartsWith(number, "C76")) return absl::InternalError(absl::StrCat("ptxas: ", line));
    if (number == "C7508" || absl::StartsWith(number, "C751"))
      return absl::ResourceExhaustedError(absl::StrCat("ptxas: ", line));
  }
  if (allow_spills || (report.spill_bytes == 0 && report.stack_bytes == 0)) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("registers: ", report.spill_bytes, " B spilled with ", report.registers,
                   " registers, stack of ", report.stack_bytes, " B"));
}

absl::StatusOr<Assembled> AssemblePtx(const Ptxas& ptxas, const std::string& ptx,
                                      const std::string& arch, absl::Duration deadline) {
  auto run = RunCompiler(
      ptxas.path,
      {"-v", absl::StrCat("-arch=", arch), "-o", kCompilerOutputPath, kCompilerInputPath}, ptx,
      deadline);
  if (!run.ok()) return run.status();
  if (run->exit_code != 0) {
    const std::string text = absl::StrCat("ptxas: ", ErrorLines(run->log));
    return absl::StrContains(text, "uses too much") ? absl::ResourceExhaustedError(text)
                                                    : absl::InternalError(text);
  }
  Assembled assembled{std::move(run->output), std::move(run->log), {}};
  assembled.report = ParsePtxasLog(assembled.log);
  return assembled;
}

}  // namespace tilewright
