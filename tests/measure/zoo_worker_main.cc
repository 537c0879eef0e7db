// A worker's executable for tests: its builders also write the zoo's kernels.
#include <cstdio>
#include <string_view>

#include "measure/children.h"
#include "tests/fakes/zoo.h"

int main(int argc, char** argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  if (command == "builder") return tilewright::BuilderMain(tilewright::ZooCatalogue());
  if (command == "runner") return tilewright::RunnerMain();
  fprintf(stderr, "zoo_worker: command '%s' is unknown; accepted: builder, runner\n",
          argc > 1 ? argv[1] : "");
  return 2;
}
