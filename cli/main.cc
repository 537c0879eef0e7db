// tilewright: flags to options to a library call to print.
//
// A flag's value comes from the command line, else from the environment (TILEWRIGHT_DB for --db),
// else from --config FILE (TOML), else from the default.
#include <cctype>
#include <cstdio>
#include <functional>
#include <map>
#include <string>

#include "CLI/CLI.hpp"
#include "cli/command.h"
#include "codegen/writer.h"

namespace {

// --time-limit is TILEWRIGHT_TIME_LIMIT.
void NameEnvironment(CLI::App* app) {
  for (CLI::Option* option : app->get_options()) {
    if (option->get_lnames().empty() || option->get_lnames()[0] == "help" ||
        option->get_lnames()[0] == "config")
      continue;
    std::string name = "TILEWRIGHT_";
    for (char c : option->get_lnames()[0])
      name += c == '-' ? '_' : static_cast<char>(std::toupper(c));
    option->envname(name);
  }
  for (CLI::App* below : app->get_subcommands([](CLI::App*) { return true; }))
    NameEnvironment(below);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Tilewright writes tuned kernels.", "tilewright");
  app.require_subcommand(1);
  app.set_config("--config", "", "read flags from a TOML file");
  app.set_version_flag("--version", "tilewright " TILEWRIGHT_VERSION " (" +
                                        tilewright::ToolchainId({.backend = "host"}) +
                                        ", cuda " TILEWRIGHT_CUDA_STATE ")");
  std::map<CLI::App*, std::function<int()>> run;
  for (const tilewright::Command& command : tilewright::AllCommands()) {
    CLI::App* sub = app.add_subcommand(command.name, command.help);
    if (command.hidden) sub->group("");
    run[sub] = command.add(sub);
  }
  NameEnvironment(&app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {  // --help, --version
    return app.exit(done);
  } catch (const CLI::ParseError& error) {
    std::string hint = "tilewright --help";
    for (const auto& [sub, unused] : run) {
      if (sub->parsed()) hint = "tilewright " + sub->get_name() + " --help";
    }
    std::fprintf(stderr, "tilewright: %s; see `%s`\n", error.what(), hint.c_str());
    return tilewright::kExitBadInput;
  }
  for (const auto& [sub, function] : run) {
    if (sub->parsed()) return function();
  }
  return tilewright::kExitBadInput;
}
