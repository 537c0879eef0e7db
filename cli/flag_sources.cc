#include "cli/flag_sources.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <istream>
#include <memory>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tilewright {
namespace {

// --time-limit is TILEWRIGHT_TIME_LIMIT.
std::string EnvironmentName(const std::string& flag) {
  std::string name = "TILEWRIGHT_";
  for (char c : flag) name += c == '-' ? '_' : static_cast<char>(std::toupper(c));
  return name;
}

// CLI11 asks the environment only for flags that the file has not set. To let the environment
// win, what it has is taken out of the file.
class FileBelowEnvironment : public CLI::ConfigTOML {
 public:
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    std::vector<CLI::ConfigItem> items = CLI::ConfigTOML::from_config(input);
    items.erase(std::remove_if(items.begin(), items.end(),
                               [](const CLI::ConfigItem& item) {
                                 const char* value =
                                     std::getenv(EnvironmentName(item.name).c_str());
                                 return value != nullptr && *value != '\0';
                               }),
                items.end());
    return items;
  }
};

// An empty text would be as if the flag were not given: a shell's variable that was not set.
std::string NotEmpty(const std::string& value) {
  return value.empty() ? "expected a value, found an empty text" : "";
}

// What holds for every flag of a command and those below.
void PrepareFlags(CLI::App* app) {
  for (CLI::Option* option : app->get_options()) {
    if (option->get_lnames().empty()) continue;
    const std::string& flag = option->get_lnames()[0];
    if (flag != "help" && flag != "config" && flag != "version")
      option->envname(EnvironmentName(flag));
  }
  for (CLI::Option* option : app->get_options()) {
    if (option->get_expected_max() > 0) option->check(NotEmpty);
  }
  for (CLI::App* below : app->get_subcommands([](CLI::App*) { return true; })) {
    below->fallthrough();  // --config stands behind the command as well
    PrepareFlags(below);
  }
}

// The commands that help shows.
std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_group().empty()) names.push_back(command->get_name());
  }
  return names;
}

}  // namespace

void AddFlagSources(CLI::App* app) {
  app->set_config("--config", "", "read flags from a TOML file with a section for each command");
  app->allow_config_extras(CLI::config_extras_mode::error);
  app->config_formatter(std::make_shared<FileBelowEnvironment>());
  PrepareFlags(app);
}

std::string UsageError(const CLI::App& app, const CLI::ParseError& error) {
  std::string called = app.get_name();
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) {
    at = at->get_subcommands()[0];
    absl::StrAppend(&called, " ", at->get_name());
  }
  const std::string help = absl::StrCat("; see `", called, " --help`");
  if (const std::vector<std::string> names = CommandNames(*at); !names.empty()) {
    std::string found;
    for (const std::string& word : app.remaining(/*recurse=*/true)) {
      if (found.empty() && !absl::StartsWith(word, "-")) found = word;
    }
    const std::string commands = absl::StrCat("commands are ", absl::StrJoin(names, ", "), help);
    if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr)
      return found.empty() ? absl::StrCat("expected a command after `", called, "`; ", commands)
                           : absl::StrCat("unknown command '", found, "'; ", commands);
  }
  if (dynamic_cast<const CLI::ConfigError*>(&error) != nullptr) {
    const std::string what = error.what();
    return absl::StrCat("--config: '", what.substr(what.rfind(' ') + 1),
                        "' is no flag; the file has sections named after commands, such as "
                        "[tune], with their flags, such as db = \"tuning.db\"",
                        help);
  }
  return absl::StrCat(error.what(), help);
}

}  // namespace tilewright
