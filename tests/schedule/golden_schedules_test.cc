// Schedule texts of every released version stay legal: records, packs and models of old logs depend
// on them.
//
// golden/schedules_v1.txt has blocks of three lines: canonical workload, target kind, schedule.
// TILEWRIGHT_ADD_GOLDEN=1 appends the default schedule, and one with other choices, of every
// variant that the file lacks; lines that are there are never rewritten.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "schedule/variant.h"

namespace tilewright {
namespace {

constexpr char kGolden[] = TILEWRIGHT_GOLDEN_DIR "/schedules_v1.txt";

struct GoldenSchedule {
  std::string workload;
  std::string target;
  std::string schedule;
};

std::vector<GoldenSchedule> ReadGolden() {
  std::vector<GoldenSchedule> rows;
  std::vector<std::string> lines;
  std::ifstream in(kGolden);
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.front() != '#') lines.push_back(line);
  }
  for (size_t i = 0; i + 2 < lines.size(); i += 3)
    rows.push_back({lines[i], lines[i + 1], lines[i + 2]});
  return rows;
}

struct Example {
  const char* expression;
  const char* sizes;
  const char* types = "f32";
};
// Between them every variant applies to one.
constexpr Example kExamples[] = {
    {"C[m,n] = sum(k: A[m,k] * B[k,n])", "m=64 n=1..96 k=128"},
    {"y[m] = sum(k: A[m,k] * x[k])", "m=64 k=128"},
    {"Y[r,c] = gelu(X[r,c]) * Z[r,c]", "r=64 c=1..100"},
    {"C[m,n] = sum(k: A[m,k] * B[n,k])", "m=1..64 n=96 k=128", "bf16"},
    {"z[r] = sum(c: exp(X[r,c])); Y[r,c] = exp(X[r,c]) / z[r]", "r=1..64 c=100"},
};

void AddMissing(std::set<std::string> known) {
  std::ofstream out(kGolden, std::ios::app);
  for (const Example& example : kExamples) {
    absl::StatusOr<Workload> workload =
        Workload::Make(example.expression, {.sizes = example.sizes, .types = example.types});
    ASSERT_TRUE(workload.ok()) << workload.status();
    for (const Target& target : KnownTargets()) {
      auto space = ScheduleSpace::Make(*workload, target, AllVariants());
      ASSERT_TRUE(space.ok()) << space.status();
      for (const Variant* variant : (*space)->variants()) {
        if (known.count(variant->name) != 0) continue;
        const VariantSpace& own = (*space)->variant_space(variant->name);
        for (const Schedule& schedule :
             {variant->default_schedule(*workload, target), own.At(own.Count() / 3)}) {
          out << workload->canonical_text() << '\n'
              << target.kind << '\n'
              << schedule.ToString() << '\n';
        }
      }
    }
  }
}

TEST(GoldenSchedules, OfEveryVariantAreStillLegal) {
  std::set<std::string> known;
  for (const GoldenSchedule& row : ReadGolden())
    known.insert(row.schedule.substr(0, row.schedule.find('{')));
  if (std::getenv("TILEWRIGHT_ADD_GOLDEN") != nullptr) AddMissing(known);
  std::set<std::string> seen;
  for (const GoldenSchedule& row : ReadGolden()) {
    absl::StatusOr<Workload> workload = Workload::FromCanonicalText(row.workload);
    ASSERT_TRUE(workload.ok()) << workload.status();
    absl::StatusOr<Target> target = FindTarget(row.target);
    ASSERT_TRUE(target.ok()) << target.status();
    absl::StatusOr<Schedule> schedule = ParseSchedule(row.schedule);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    EXPECT_EQ(schedule->ToString(), row.schedule);
    auto space = ScheduleSpace::Make(*workload, *target, AllVariants());
    ASSERT_TRUE(space.ok()) << space.status();
    EXPECT_TRUE((*space)->space().IndexOf(*schedule).ok())
        << (*space)->space().IndexOf(*schedule).status();
    seen.insert(schedule->variant);
  }
  for (const Variant& variant : AllVariants()) {
    EXPECT_EQ(seen.count(variant.name), 1)
        << variant.name << " has no golden text; TILEWRIGHT_ADD_GOLDEN=1 adds one";
  }
}

}  // namespace
}  // namespace tilewright
