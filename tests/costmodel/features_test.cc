#include "costmodel/features.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "absl/status/status.h"

namespace tilewright {
namespace {

using ::testing::HasSubstr;

// Two variants of one family that share `tile`; only `tiled` has `order`, absent for tile=1.
Variant MakeVariant(const std::string& name, bool with_order) {
  Variant variant;
  variant.name = name;
  variant.family = "toy";
  variant.help = "a toy";
  variant.backends = {"host"};
  variant.applies = [](const Workload&, const Target&) { return absl::OkStatus(); };
  variant.define = [name, with_order](const Workload&, const Target&) {
    SpaceDefinition definition{.variant = name};
    definition.decisions = {{.name = "tile", .values = IntegerValues({1, 3, 7})}};
    if (with_order) {
      definition.decisions.push_back({.name = "order",
                                      .values = IntegerValues({0, 1}),
                                      .depends_on = {"tile"},
                                      .present = [](Numbers n) { return n[0] > 1; }});
    }
    return definition;
  };
  variant.plan = [with_order](const Workload& workload, const Target&, Numbers n,
                              absl::Span<const int64_t> sizes) {
    auto plan = std::make_unique<Plan>();
    plan->threads = 2;
    plan->operations = workload.Operations(sizes);
    plan->memory_bytes = 1023;
    plan->balance = 0.75;
    if (with_order) plan->quantities = {{"strips", "strip", 31.0 * n[0]}, {"waste", "", 0.125}};
    return plan;
  };
  variant.default_schedule = [name, with_order](const Workload&, const Target&) {
    Schedule schedule{name, {{"tile", "3"}}};
    if (with_order) schedule.decisions.emplace_back("order", "0");
    return schedule;
  };
  return variant;
}

const std::vector<Variant>& Variants() {
  static const auto* const variants =
      new std::vector<Variant>{MakeVariant("toy.plain", false), MakeVariant("toy.tiled", true)};
  return *variants;
}

std::shared_ptr<const ScheduleSpace> Space(const std::string& sizes) {
  absl::StatusOr<Workload> workload =
      Workload::Make("C[m,n] = sum(k: A[m,k] * B[k,n])", {.sizes = sizes, .types = "f32"});
  EXPECT_TRUE(workload.ok()) << workload.status();
  return *ScheduleSpace::Make(*std::move(workload), KnownTargets()[0], Variants());
}

class FeaturesTest : public testing::Test {
 protected:
  FeatureRow Extract(const std::string& schedule) {
    absl::StatusOr<FeatureRow> row = extractor_.Extract(*ParseSchedule(schedule));
    EXPECT_TRUE(row.ok()) << row.status();
    return *row;
  }
  float Get(const FeatureRow& row, const std::string& name) const {
    const int column = schema_.Find(name);
    EXPECT_GE(column, 0) << name;
    return static_cast<size_t>(column) < row.size() ? row[column] : NAN;
  }

  std::shared_ptr<const ScheduleSpace> space_ = Space("m=64,n=64,k=64");
  FeatureSchema schema_;
  FeatureExtractor extractor_{space_, space_->workload().HighestSizes(),
                              DefaultRates(space_->target(), space_->workload()), &schema_};
};

TEST_F(FeaturesTest, AmountsAreLogarithmsAndRatiosAreThemselves) {
  const FeatureRow row = Extract("toy.tiled{tile=7 order=1}");
  EXPECT_EQ(Get(row, "decision.tile"), 3);       // log2(1 + 7)
  EXPECT_EQ(Get(row, "decision.order"), 1);      // log2(1 + 1)
  EXPECT_EQ(Get(row, "plan.memory_bytes"), 10);  // log2(1 + 1023)
  EXPECT_EQ(Get(row, "plan.balance"), 0.75f);
  EXPECT_EQ(Get(row, "plan.waste"), 0.125f);
  EXPECT_NEAR(Get(row, "plan.strips"), std::log2(1 + 217.0), 1e-5);
  EXPECT_EQ(Get(row, "variant.toy.tiled"), 1);
  EXPECT_EQ(Get(row, "variant.toy.plain"), 0);
  EXPECT_NEAR(Get(row, "target.cores"), std::log2(9.0), 1e-6);
  const int strips = schema_.Find("plan.strips");
  EXPECT_EQ(schema_.features()[strips].unit, "log2 strip");
}

TEST_F(FeaturesTest, WhatIsAbsentIsMissing) {
  EXPECT_TRUE(std::isnan(Get(Extract("toy.tiled{tile=1}"), "decision.order")));
  const FeatureRow plain = Extract("toy.plain{tile=1}");
  EXPECT_TRUE(std::isnan(Get(plain, "decision.order")));
  EXPECT_TRUE(std::isnan(Get(plain, "plan.strips")));
  EXPECT_EQ(Get(plain, "decision.tile"), 1);
}

TEST_F(FeaturesTest, TheBoundIsTheFirstColumn) {
  const FeatureRow row = Extract("toy.tiled{tile=7 order=1}");
  const Bound bound =
      ComputeBound(*extractor_.Quantities(*ParseSchedule("toy.tiled{tile=7 order=1}")),
                   DefaultRates(space_->target(), 4));
  EXPECT_NEAR(row[FeatureSchema::kBoundColumn], std::log2(bound.seconds), 1e-6);
  EXPECT_EQ(schema_.features()[0], (Feature{"bound", "log2 s"}));
}

TEST_F(FeaturesTest, SpacesOfOneSchemaShareColumns) {
  const FeatureRow row = Extract("toy.tiled{tile=3 order=0}");
  const size_t columns = schema_.features().size();
  auto other = Space("m=128,n=32,k=16");
  FeatureExtractor extractor(other, other->workload().HighestSizes(),
                             DefaultRates(other->target(), other->workload()), &schema_);
  const FeatureRow larger = *extractor.Extract(*ParseSchedule("toy.tiled{tile=3 order=0}"));
  EXPECT_EQ(schema_.features().size(), columns);
  EXPECT_EQ(Get(row, "decision.tile"), Get(larger, "decision.tile"));
  EXPECT_NE(Get(row, "workload.operations"), Get(larger, "workload.operations"));
}

TEST_F(FeaturesTest, IllegalSchedulesAreRefusedWithTheReason) {
  EXPECT_THAT(
      std::string(extractor_.Extract(*ParseSchedule("toy.tiled{tile=2}")).status().message()),
      HasSubstr("tile=2 is no value of that decision; accepted: 1, 3, 7"));
}

TEST_F(FeaturesTest, TextHasALinePerFeatureThatIsNotMissing) {
  const std::string text = FeaturesText(schema_, Extract("toy.tiled{tile=1}"));
  EXPECT_THAT(text, HasSubstr("  decision.tile                        1 log2\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("decision.order")));
}

}  // namespace
}  // namespace tilewright
