#include "schedule/workload_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace tilewright {
namespace {

using testing::ElementsAre;
using testing::StartsWith;

TEST(WorkloadFile, ReadsOperatorsAndExpressions) {
  const auto file = ParseWorkloadFile(
      "# the layers of a small model\n"
      "\n"
      "qkv  x32 linear(t=1..8192 i=4096 o=6144) bf16   # fused\n"
      "gate x2 'C[m,n] = silu(sum(k: A[m,k] * B[k,n]))' m=512 n=1024,k=64 f16,B:e4m3 C:f32\r\n"
      "soft x1 softmax r=4 c=8 f32",
      "ops.tw");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->size(), 3);
  const NamedWorkload& qkv = (*file)[0];
  EXPECT_EQ(qkv.name, "qkv");
  EXPECT_EQ(qkv.weight, 32);
  EXPECT_EQ(qkv.line, 3);
  EXPECT_THAT(qkv.names.tensors, ElementsAre("X", "W", "bias", "Y"));
  EXPECT_TRUE(qkv.workload.has_range());
  const NamedWorkload& gate = (*file)[1];
  EXPECT_EQ(gate.workload.canonical_text(),
            "tw1 t2:f32[i0=512,i1=1024]=silu(sum(i2=64:t0:e4m3[i2,i1]*t1:f16[i0,i2]))");
  EXPECT_EQ((*file)[2].name, "soft");
}

TEST(WorkloadFile, TakesAWeightOfOneWhereNoneIsGiven) {
  const absl::StatusOr<std::vector<NamedWorkload>> workloads =
      ParseWorkloadFile("a linear(t=1 i=1 o=1) f32", "ops.tw");
  ASSERT_TRUE(workloads.ok()) << workloads.status();
  EXPECT_EQ(workloads->at(0).weight, 1);
  EXPECT_EQ(workloads->at(0).source, "linear(t=1 i=1 o=1)");
}

struct ErrorCase {
  const char* text;
  const char* message;
};

TEST(WorkloadFile, LocatesErrors) {
  const ErrorCase kCases[] = {
      {"q-kv x1 linear(t=1 i=1 o=1) f32",
       "ops.tw:1: 1:1: a workload's name is a C identifier: letters, digits and '_'"},
      {"# fine\na x0 linear(t=1 i=1 o=1) f32",
       "ops.tw:2: 1:3: a weight is a whole number from 1, such as x32"},
      {"a x-1 linear(t=1 i=1 o=1) f32", "ops.tw:1: 1:3: a weight is a whole number"},
      {"a x1.5 linear(t=1 i=1 o=1) f32", "ops.tw:1: 1:3: a weight is a whole number"},
      {"a x99999999999999999999 linear(t=1 i=1 o=1) f32",
       "ops.tw:1: 1:3: a weight is a whole number"},
      {"", "ops.tw: no workload in it; a line such as"},
      {"# nothing\n\n", "ops.tw: no workload in it; a line such as"},
      {"a x1", "ops.tw:1: 1:5: expected an operator such as"},
      {"a x1 liner(t=1 i=1 o=1) f32", "ops.tw:1: unknown operator 'liner'"},
      {"a x1 linear(t=1 i=1 o=1 f32", "ops.tw:1: 1:6: the parenthesis is not closed"},
      {"a x1 'Y[i] = X[i] i=3 f32", "ops.tw:1: 1:6: the quoted expression is not closed"},
      {"a x1 Y[i]=X[i] i=3 f32", "ops.tw:1: 1:6: an expression stands in quotes"},
      {"a x1 'Y[i]=X[j]' i=3 f32", "ops.tw:1: 1:8: index 'j' is bound neither"},
      {"a x1 'Y[i]=X[i]' i=3", "ops.tw:1: 1:1: no type for tensor 'Y'"},
      {"a x1 linear(t=1 i=1) f32", "ops.tw:1: 1:5: no size for index 'o'"},
      {"a x1 'Y[i]=X[i]' i=3 f32\na x1 'Y[i]=X[i]' i=4 f32",
       "ops.tw:2: the name 'a' stands in line 1 already"},
  };
  for (const ErrorCase& c : kCases) {
    const auto file = ParseWorkloadFile(c.text, "ops.tw");
    ASSERT_FALSE(file.ok()) << c.text;
    EXPECT_THAT(std::string(file.status().message()), StartsWith(c.message));
  }
}

TEST(WorkloadFile, TakesTheMarkOfUtf8AtTheBeginning) {
  const auto file = ParseWorkloadFile(
      "\xef\xbb\xbf"
      "a linear(t=1 i=1 o=1) f32",
      "ops.tw");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->at(0).name, "a");
}

TEST(WorkloadFile, EndsReadingWhatHasNoEnd) {
  const auto file = ReadWorkloadFile("/dev/zero");
  EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(file.status().message(), "'/dev/zero' has more than 16 MiB; expected a workload file");
}

TEST(WorkloadFile, RefusesADirectory) {
  const auto file = ReadWorkloadFile("/");
  EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(file.status().message(), "'/' is a directory; expected a workload file");
}

TEST(WorkloadFile, SaysWhichFileIsMissing) {
  const auto file = ReadWorkloadFile("/nonexistent/ops.tw");
  EXPECT_EQ(file.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(file.status().message(), "can't open the workload file '/nonexistent/ops.tw'");
}

}  // namespace
}  // namespace tilewright
