// The program of what needs a GPU. It is its own worker's executable, so it runs anywhere:
//
//   gpu_test [GOOGLETEST FLAG ...]
//   gpu_test timers [cupti|event]
//   gpu_test cost
//   gpu_test sanitize LOG [MOST]
//   gpu_test once WORKLOAD SCHEDULE
#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>

#include "codegen/writer.h"
#include "measure/children.h"
#include "tests/gpu/cost.h"
#include "tests/gpu/sanitize.h"
#include "tests/gpu/timers.h"

int main(int argc, char** argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  if (command == "builder") return tilewright::BuilderMain(tilewright::DefaultCatalogue());
  if (command == "runner") return tilewright::RunnerMain();
  if (command == "timers") return tilewright::PrintTimers(argc > 2 ? argv[2] : "cupti");
  if (command == "cost") return tilewright::PrintCost();
  if (command == "sanitize" && argc > 2)
    return tilewright::PrintSanitized(argv[2], argc > 3 ? std::atoi(argv[3]) : 0);
  if (command == "once" && argc > 3) return tilewright::RunKernelOnce(argv[2], argv[3]);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
