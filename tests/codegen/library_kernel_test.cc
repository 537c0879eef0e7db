#include "codegen/library_kernel.h"

#include <gtest/gtest.h>

namespace tilewright {
namespace {

TEST(LibraryKernel, ItsRecipeSaysWhatTheLibraryIsTold) {
  const absl::StatusOr<Workload> workload =
      Workload::Make("C[m,n] = sum(k: A[m,k] * B[k,n])", {"m=8 n=32 k=16", "bf16"});
  ASSERT_TRUE(workload.ok()) << workload.status();
  const absl::StatusOr<Kernel> kernel =
      WriteLibraryKernel(*workload, *ParseSchedule("contraction.library{name=cublaslt algo=5}"));
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  // As it arrives at a runner.
  const absl::StatusOr<Kernel> parsed = ParseRecipe(kernel->RecipeJson());
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const absl::StatusOr<LibraryCall> call = ReadLibraryKernel(*parsed);
  ASSERT_TRUE(call.ok()) << call.status();
  EXPECT_EQ(call->library, "cublaslt");
  EXPECT_EQ(call->algorithm, 5);
  EXPECT_EQ(call->product, *MatchLibraryProduct(*workload, workload->HighestSizes()));
}

TEST(LibraryKernel, ItsRecipeSaysWhatIsAddedAndFused) {
  const absl::StatusOr<Workload> workload =
      Workload::Make("C[b,m,n] = relu(0.125 * sum(k: A[b,m,k] * B[b,k,n]) + bias[n] + R[b,m,n])",
                     {"b=2 m=8 n=32 k=16", "f16"});
  ASSERT_TRUE(workload.ok()) << workload.status();
  const absl::StatusOr<Kernel> kernel =
      WriteLibraryKernel(*workload, *ParseSchedule("contraction.library{name=cublaslt algo=0}"));
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const absl::StatusOr<Kernel> parsed = ParseRecipe(kernel->RecipeJson());
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const absl::StatusOr<LibraryCall> call = ReadLibraryKernel(*parsed);
  ASSERT_TRUE(call.ok()) << call.status();
  EXPECT_EQ(call->product, *MatchLibraryProduct(*workload, workload->HighestSizes()));
  EXPECT_TRUE(call->product.has_epilogue());
}

TEST(LibraryKernel, OtherKernelsAndSchedulesAreRefused) {
  EXPECT_FALSE(ReadLibraryKernel(Kernel()).ok());
  const absl::StatusOr<Workload> workload =
      Workload::Make("C[m,n] = sum(k: A[m,k] * B[k,n])", {"m=8 n=32 k=16", "bf16"});
  for (const char* text :
       {"contraction.library{name=cublaslt}", "contraction.library{algo=1}",
        "contraction.library{name=cublaslt algo=x}", "contraction.library{name=atlas algo=0}"}) {
    EXPECT_EQ(WriteLibraryKernel(*workload, *ParseSchedule(text)).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace tilewright
