#include <cstdio>
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/commands.h"
#include "codegen/ptxas.h"
#include "search/production.h"

namespace tilewright {
namespace {

struct ReplayFlags {
  std::string record;
  std::string db = "tuning.db";
  std::string dump;
};

void PrintDigest(const char* stage, const std::string& expected, const std::string& got) {
  if (got.empty() && expected.empty()) return;
  std::printf("%-8s %s  %s\n", stage, got.c_str(),
              expected.empty()  ? "not recorded"
              : expected == got ? "same"
                                : ("was " + expected).c_str());
}

int RunReplay(const ReplayFlags& flags) {
  const absl::StatusOr<Id> id = Id::FromHex(flags.record);
  if (!id.ok()) return Fail(id.status());
  absl::StatusOr<std::unique_ptr<Database>> log = Database::OpenReader(flags.db);
  if (!log.ok()) return FailToOpen(log.status());
  const absl::StatusOr<ReplayReport> report = Replay(**log, *id, DefaultCatalogue(), flags.dump);
  if (!report.ok()) return Fail(report.status());
  std::printf("%s %s\nworkload %s\ntarget   %s\nregime   %s\nschedule %s\n", report->record.c_str(),
              flags.record.c_str(), report->workload.key().c_str(), report->target.kind.c_str(),
              report->regime.c_str(), report->schedule.ToString().c_str());
  PrintDigest("ir", report->expected.ir, report->got.ir);
  PrintDigest("assembly", report->expected.assembly, report->got.assembly);
  PrintDigest("binary", report->expected.binary, report->got.binary);
  if (report->same()) {
    std::printf("the kernel is the one that was measured\n");
    return kExitOk;
  }
  std::printf(
      "the kernel is not proved to be the one that was measured (toolchain then: %s; now: %s)\n",
      report->toolchain_then.empty() ? "not recorded" : report->toolchain_then.c_str(),
      report->toolchain_now.c_str());
  if (report->target.is_gpu() && report->expected.binary != report->got.binary &&
      report->expected.ir == report->got.ir) {
    const absl::StatusOr<Ptxas> ptxas = FindPtxas();
    if (!ptxas.ok() || ptxas->path.empty()) {
      std::printf(
          "the binary is PTX, since no ptxas was found: set TILEWRIGHT_PTXAS to the one that "
          "assembled the kernel then\n");
    }
  }
  return kExitFailed;
}

}  // namespace

std::function<int()> AddReplay(CLI::App* app) {
  auto flags = std::make_shared<ReplayFlags>();
  app->add_option("record", flags->record, "the id of a trial or a verdict")->required();
  app->add_option("--db", flags->db, "the tuning log")->capture_default_str();
  app->add_option("--dump", flags->dump,
                  "write schedule, plan, IR and assembly into this directory");
  return [flags] { return RunReplay(*flags); };
}

}  // namespace tilewright
