// tilewright: flags to options to a library call to print.
#include <fcntl.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <functional>
#include <map>
#include <new>
#include <string>

#include "CLI/CLI.hpp"
#include "cli/command.h"
#include "cli/flag_sources.h"
#include "codegen/writer.h"
#include "measure/cuda_device.h"

namespace {

// A program that was started without standard input, output or error would give their numbers to
// the first files that it opens, and then print into these.
void OpenStandardFiles() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (fcntl(fd, F_GETFD) == -1 && open("/dev/null", O_RDWR) != fd) return;
  }
}

// What was printed is lost if standard output is full.
int CloseOutput(int code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  std::fprintf(stderr, "tilewright: standard output cannot be written\n");
  return code == tilewright::kExitOk ? tilewright::kExitFailed : code;
}

}  // namespace

int main(int argc, char** argv) {
  OpenStandardFiles();
  // A limit of the size of files is then an error of a write, as a full disk is.
  std::signal(SIGXFSZ, SIG_IGN);
  CLI::App app("Tilewright writes tuned kernels.", "tilewright");
  app.require_subcommand(1);
  app.set_version_flag("--version", "tilewright " TILEWRIGHT_VERSION " (" +
                                        tilewright::ToolchainId({.backend = "host"}) +
                                        ", cuda devices " +
                                        std::string(tilewright::CudaBuildState()) + ")");
  std::map<CLI::App*, std::function<int()>> run;
  for (const tilewright::Command& command : tilewright::AllCommands()) {
    CLI::App* sub = app.add_subcommand(command.name, command.help);
    if (command.hidden) sub->group("");
    run[sub] = command.add(sub);
  }
  tilewright::AddFlagSources(&app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {  // --help, --version
    return CloseOutput(app.exit(done));
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "tilewright: %s\n", tilewright::UsageError(app, error).c_str());
    return tilewright::kExitBadInput;
  }
  // Nothing of ours throws; libraries do where memory or threads end.
  try {
    for (const auto& [sub, function] : run) {
      if (sub->parsed()) return CloseOutput(function());
    }
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "tilewright: there is not enough memory\n");
    return CloseOutput(tilewright::kExitFailed);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tilewright: %s\n", error.what());
    return CloseOutput(tilewright::kExitFailed);
  }
  return tilewright::kExitBadInput;
}
