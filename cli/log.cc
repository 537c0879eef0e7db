#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <system_error>

#include "cli/command.h"
#include "cli/commands.h"
#include "db/database.h"
#include "db/export.h"

namespace tilewright {
namespace {

struct LogFlags {
  std::string db = "tuning.db";
  std::string file;
  bool no_samples = false;
};

int Export(const LogFlags& flags) {
  absl::StatusOr<std::unique_ptr<Database>> log = Database::OpenReader(flags.db);
  if (!log.ok()) return FailToOpen(log.status());
  const ExportOptions options{.samples = !flags.no_samples};
  absl::StatusOr<ExportReport> report;
  if (flags.file.empty() || flags.file == "-") {
    report = ExportLog(**log, options, [](const std::string& line) {
      return std::fputs(line.c_str(), stdout) < 0 || std::fputc('\n', stdout) < 0
                 ? absl::UnavailableError("standard output cannot be written")
                 : absl::OkStatus();
    });
  } else {
    report = ExportLogToFile(**log, options, flags.file);
  }
  if (!report.ok()) return Fail(report.status());
  std::fprintf(stderr, "%lld lines written", static_cast<long long>(report->lines));
  if (report->unreadable_blobs > 0) {
    std::fprintf(stderr, "; %lld records without their samples, which do not decode",
                 static_cast<long long>(report->unreadable_blobs));
  }
  std::fprintf(stderr, "\n");
  return kExitOk;
}

int PrintImport(const absl::StatusOr<ImportReport>& report) {
  if (!report.ok()) {
    const int code = Fail(report.status());
    return absl::IsFailedPrecondition(report.status()) ? kExitBadInput : code;
  }
  std::fprintf(
      stderr,
      "%lld lines: %lld records added (%lld of them late), %lld known already, %lld conflicting\n",
      static_cast<long long>(report->lines), static_cast<long long>(report->added),
      static_cast<long long>(report->late), static_cast<long long>(report->known),
      static_cast<long long>(report->conflicting));
  return kExitOk;
}

// The log that records are added to. One that was made for them is removed again if they cannot be.
class Receiver {
 public:
  explicit Receiver(const std::string& path)
      : path_(path), is_new_(!std::filesystem::exists(path)), log_(Database::OpenWriter(path)) {}
  ~Receiver() {
    if (!is_new_ || kept_ || !log_.ok()) return;
    log_->reset();
    for (const char* suffix : {"", "-wal", "-shm", ".lock"}) {
      std::error_code absent;
      std::filesystem::remove(path_ + suffix, absent);
    }
  }
  const absl::StatusOr<std::unique_ptr<Database>>& log() const { return log_; }
  void Keep() { kept_ = true; }

 private:
  const std::string path_;
  const bool is_new_;
  bool kept_ = false;
  absl::StatusOr<std::unique_ptr<Database>> log_;
};

int Import(const LogFlags& flags) {
  std::ifstream file;
  if (flags.file != "-") {
    if (std::error_code unknown; std::filesystem::is_directory(flags.file, unknown))
      return Fail(absl::InvalidArgumentError(
          flags.file + " is a directory; expected a file that `log export` wrote"));
    file.open(flags.file);
    if (!file) return Fail(absl::NotFoundError(flags.file + " cannot be opened"));
  }
  Receiver receiver(flags.db);
  if (!receiver.log().ok()) return FailToOpen(receiver.log().status());
  const absl::StatusOr<ImportReport> report =
      ImportLog(**receiver.log(), flags.file == "-" ? std::cin : file, flags.file);
  if (report.ok()) receiver.Keep();
  return PrintImport(report);
}

int Merge(const LogFlags& flags) {
  absl::StatusOr<std::unique_ptr<Database>> from = Database::OpenReader(flags.file);
  if (!from.ok()) return FailToOpen(from.status());
  Receiver receiver(flags.db);
  if (!receiver.log().ok()) return FailToOpen(receiver.log().status());
  const absl::StatusOr<ImportReport> report = MergeLog(**receiver.log(), **from);
  if (report.ok()) receiver.Keep();
  return PrintImport(report);
}

int Backup(const LogFlags& flags) {
  absl::StatusOr<std::unique_ptr<Database>> log = Database::OpenReader(flags.db);
  if (!log.ok()) return FailToOpen(log.status());
  const absl::Status status = (*log)->Backup(flags.file);
  if (absl::IsAlreadyExists(status)) return Fail(absl::InvalidArgumentError(status.message()));
  return status.ok() ? kExitOk : Fail(status);
}

struct LogCommand {
  const char* name;
  const char* help;
  const char* file_help;
  bool file_required;
  int (*run)(const LogFlags&);
};
constexpr LogCommand kLogCommands[] = {
    {"export", "write all records as JSON lines", "where to; default: standard output", false,
     Export},
    {"import", "read records that `log export` wrote; what is known already is left alone",
     "the file; - is standard input", true, Import},
    {"merge", "read the records of another log", "the other log", true, Merge},
    {"backup", "copy the log, also while it is written", "the copy, which must not exist", true,
     Backup},
};

}  // namespace

std::function<int()> AddLog(CLI::App* app) {
  app->require_subcommand(1);
  auto chosen = std::make_shared<std::function<int()>>();
  for (const LogCommand& command : kLogCommands) {
    auto flags = std::make_shared<LogFlags>();
    CLI::App* sub = app->add_subcommand(command.name, command.help);
    CLI::Option* file = sub->add_option("file", flags->file, command.file_help);
    if (command.file_required) file->required();
    sub->add_option("--db", flags->db, "the tuning log")->capture_default_str();
    if (command.run == Export)
      sub->add_flag("--no-samples", flags->no_samples, "leave samples and rounds out");
    sub->callback(
        [chosen, flags, run = command.run] { *chosen = [flags, run] { return run(*flags); }; });
  }
  return [chosen] { return (*chosen)(); };
}

}  // namespace tilewright
