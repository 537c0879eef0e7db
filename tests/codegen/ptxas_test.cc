// ptxas' log, the refusals that follow from it, and compilers as children.
#include "codegen/ptxas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "codegen/compiler_child.h"

namespace tilewright {
namespace {

using ::testing::HasSubstr;

// Two entries, as ptxas 13.0 writes them.
constexpr char kLog[] = R"(ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'tw_0' for 'sm_90a'
ptxas info    : Function properties for tw_0
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 16 bytes cumulative stack size, 1024 bytes smem, 368 bytes cmem[0]
ptxas info    : Compile time = 21.356 ms
ptxas info    : Compiling entry function 'tw_1' for 'sm_90a'
ptxas info    : Function properties for tw_1
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 168 registers, used 0 barriers
)";

TEST(PtxasLog, GivesTheLargestOfTheEntries) {
  const PtxasReport report = ParsePtxasLog(kLog);
  EXPECT_EQ(report.registers, 168);
  EXPECT_EQ(report.stack_bytes, 16);
  EXPECT_EQ(report.spill_bytes, 20);
  EXPECT_EQ(report.shared_bytes, 1024);
  EXPECT_TRUE(report.advisories.empty());
}

TEST(PtxasLog, SpillsAreAResourceFailureUnlessAllowed) {
  const PtxasReport report = ParsePtxasLog(kLog);
  const absl::Status status = CheckPtxasReport(report, /*allow_spills=*/false);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("20 B spilled with 168 registers, stack of 16 B"));
  EXPECT_TRUE(CheckPtxasReport(report, /*allow_spills=*/true).ok());
}

TEST(PtxasLog, AdvisoriesThatMeanALostPipelineAreFailuresOfTheirKind) {
  auto code_of = [](const std::string& line) {
    return CheckPtxasReport(ParsePtxasLog(line), /*allow_spills=*/true).code();
  };
  EXPECT_EQ(code_of("ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored to "
                    "maintain minimum register requirements."),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(code_of("ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async "
                    "instructions are serialized due to insufficient register resources"),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(code_of("ptxas info    : (C7519) Potential Performance Loss: wgmma.mma_async"),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(code_of("ptxas error   : (C7602) Internal error"), absl::StatusCode::kInternal);
  EXPECT_EQ(code_of("ptxas info    : (C7999) something else"), absl::StatusCode::kOk);
}

// A machine without ptxas skips what needs it.
Ptxas PtxasHere() {
  const auto ptxas = FindPtxas();
  return ptxas.ok() ? *ptxas : Ptxas{};
}

constexpr char kSmallKernel[] = R"(.version 8.5
.target sm_90a
.address_size 64
.visible .entry tw_0(.param .u64 a) .reqntid 128,1,1
{ .reg .b64 %rd<3>; ld.param.u64 %rd1,[a]; st.global.u32 [%rd1], 1; ret; }
)";

TEST(AssemblePtx, MakesTheSameCubinEveryTime) {
  const Ptxas ptxas = PtxasHere();
  if (ptxas.path.empty()) GTEST_SKIP() << "no ptxas here";
  const auto first = AssemblePtx(ptxas, kSmallKernel, "sm_90a", absl::Seconds(60));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->cubin.substr(0, 4), "\177ELF");
  EXPECT_GT(first->report.registers, 0);
  const auto second = AssemblePtx(ptxas, kSmallKernel, "sm_90a", absl::Seconds(60));
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(first->cubin, second->cubin);
}

TEST(AssemblePtx, SaysWhatPtxasRefused) {
  const Ptxas ptxas = PtxasHere();
  if (ptxas.path.empty()) GTEST_SKIP() << "no ptxas here";
  const auto refused =
      AssemblePtx(ptxas, ".version 8.5\n.target sm_90a\n.nonsense\n", "sm_90a", absl::Seconds(60));
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(refused.status().message(), HasSubstr("line 3"));
}

TEST(AssemblePtx, MoreSharedMemoryThanThereIsIsAResourceFailure) {
  const Ptxas ptxas = PtxasHere();
  if (ptxas.path.empty()) GTEST_SKIP() << "no ptxas here";
  const std::string text = R"(.version 8.5
.target sm_90a
.address_size 64
.visible .entry tw_0(.param .u64 a)
{ .shared .b8 big[300000]; .reg .b64 %rd<3>; .reg .b32 %r<3>; ld.param.u64 %rd1,[a]; ld.shared.u32 %r1, [big]; st.global.u32 [%rd1], %r1; ret; }
)";
  EXPECT_EQ(AssemblePtx(ptxas, text, "sm_90a", absl::Seconds(60)).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(RunCompiler, HandsInputAndOutputThroughMemory) {
  const auto run =
      RunCompiler("/bin/sh",
                  {"-c", std::string("cat ") + kCompilerInputPath + " > " + kCompilerOutputPath +
                             "; echo log; echo more >&2; exit 3"},
                  "the input", absl::Seconds(30));
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->output, "the input");
  EXPECT_EQ(run->log, "log\nmore\n");
  EXPECT_EQ(run->exit_code, 3);
}

TEST(RunCompiler, KillsAChildAtItsDeadline) {
  const auto run = RunCompiler("/bin/sleep", {"60"}, "", absl::Milliseconds(100));
  EXPECT_EQ(run.status().code(), absl::StatusCode::kDeadlineExceeded);
  // Also one that no longer holds its log open.
  const auto silent = RunCompiler("/bin/sh", {"-c", "exec >/dev/null 2>&1; exec sleep 60"}, "",
                                  absl::Milliseconds(200));
  EXPECT_EQ(silent.status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(RunCompiler, SaysThatAProgramIsMissingOrCrashed) {
  EXPECT_EQ(RunCompiler("/no/such/program", {}, "", absl::Seconds(5)).status().code(),
            absl::StatusCode::kInternal);
  EXPECT_THAT(
      RunCompiler("/bin/sh", {"-c", "kill -11 $$"}, "", absl::Seconds(5)).status().message(),
      HasSubstr("signal 11"));
}

}  // namespace
}  // namespace tilewright
