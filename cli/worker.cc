#include <atomic>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/commands.h"
#include "codegen/writer.h"
#include "measure/children.h"
#include "measure/local_worker.h"
#include "measure/worker.h"

namespace tilewright {
namespace {

std::atomic<bool> stop_requested{false};
void HandleTermination(int) { stop_requested = true; }

}  // namespace

std::function<int()> AddWorker(CLI::App* app) {
  auto options = std::make_shared<WorkerOptions>();
  auto local = std::make_shared<bool>(false);
  app->add_option("--connect", options->address,
                  "the coordinator: unix:/run/x.sock or 127.0.0.1:PORT")
      ->required();
  app->add_option("--target", options->device.kind, "the kind of device: cpu or cuda")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  app->add_option("--device", options->device.device,
                  "of several GPUs: a UUID, its beginning, a number, or all; default: the first");
  app->add_option("--cores", options->device.cores,
                  "cores of the CPU device; 0: all this process may use")
      ->check(CLI::Range(0, 4096));
  app->add_option("--name", options->name,
                  "what people call this worker; default: the host's name");
  app->add_option("--batch", options->batch, "candidates per lease")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app->add_option("--dump", options->workbench.dump_directory,
                  "write every candidate's files into this directory");
  app->add_flag("--local", *local, "the coordinator is the parent process: leave with it")
      ->group("");
  return [options, local] {
    if (*local) EnterLocalWorker();
    std::signal(SIGTERM, HandleTermination);
    std::signal(SIGINT, HandleTermination);
    std::string error;
    const WorkerExit exit = RunWorker(*options, stop_requested, &error);
    if (!error.empty()) std::fprintf(stderr, "tilewright worker: %s\n", error.c_str());
    return static_cast<int>(exit);
  };
}

std::function<int()> AddBuilder(CLI::App*) {
  return [] { return BuilderMain(DefaultCatalogue()); };
}

std::function<int()> AddRunner(CLI::App*) {
  return [] { return RunnerMain(); };
}

}  // namespace tilewright
