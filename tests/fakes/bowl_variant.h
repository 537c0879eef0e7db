// A variant with a bowl of a space, for tests of what searches it.
#ifndef TILEWRIGHT_TESTS_FAKES_BOWL_VARIANT_H_
#define TILEWRIGHT_TESTS_FAKES_BOWL_VARIANT_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "schedule/schedule.h"
#include "schedule/variant.h"

namespace tilewright {

// 8 x 8 x 8 schedules, the default in a corner.
inline std::vector<Variant> BowlVariants() {
  Variant variant{.name = "test.bowl", .family = "test", .help = "for tests", .backends = {"host"}};
  variant.applies = [](const Workload&, const Target&) { return absl::OkStatus(); };
  variant.define = [](const Workload&, const Target&) {
    SpaceDefinition definition{.variant = "test.bowl"};
    for (const char* name : {"x", "y", "z"}) {
      definition.decisions.push_back(
          {.name = name, .help = name, .values = IntegerValues({0, 1, 2, 3, 4, 5, 6, 7})});
    }
    return definition;
  };
  variant.plan = [](const Workload&, const Target&, absl::Span<const int64_t> numbers,
                    absl::Span<const int64_t>) {
    auto plan = std::make_unique<Plan>();
    plan->operations = 1000 + numbers[0];
    return plan;
  };
  variant.default_schedule = [](const Workload&, const Target&) {
    return Schedule{"test.bowl", {{"x", "0"}, {"y", "0"}, {"z", "0"}}};
  };
  return {variant};
}

inline double BowlSeconds(const std::string& text) {
  const absl::StatusOr<Schedule> schedule = ParseSchedule(text);
  double cost = 1;
  for (const auto& [name, token] : schedule->decisions) {
    int value = 0;
    EXPECT_TRUE(absl::SimpleAtoi(token, &value));
    cost += 0.2 * (value - 5) * (value - 5);
  }
  return 1e-3 * cost;
}

}  // namespace tilewright

#endif  // TILEWRIGHT_TESTS_FAKES_BOWL_VARIANT_H_
