#include "schedule/library_product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace tilewright {
namespace {

Workload Make(const std::string& expression, const std::string& sizes, const std::string& types) {
  absl::StatusOr<Workload> workload = Workload::Make(expression, {sizes, types});
  EXPECT_TRUE(workload.ok()) << workload.status();
  return *std::move(workload);
}

TEST(LibraryProduct, ALinearLayerHasBothOperandsContiguousAlongK) {
  const Workload workload = Make("C[m,n] = sum(k: A[m,k] * B[n,k])", "m=8 n=32 k=16", "bf16");
  const absl::StatusOr<LibraryProduct> product =
      MatchLibraryProduct(workload, workload.HighestSizes());
  ASSERT_TRUE(product.ok()) << product.status();
  EXPECT_EQ(product->m, 8);
  EXPECT_EQ(product->n, 32);
  EXPECT_EQ(product->k, 16);
  EXPECT_TRUE(product->a.depth_contiguous);
  EXPECT_TRUE(product->b.depth_contiguous);
  EXPECT_EQ(product->a.stride, 16);
  EXPECT_EQ(product->b.stride, 16);
  EXPECT_EQ(product->c.stride, 32);
  EXPECT_EQ(product->c.buffer, 2);
  EXPECT_NE(product->a.buffer, product->b.buffer);
}

TEST(LibraryProduct, ATransposedOperandIsContiguousAlongItsRows) {
  const Workload workload = Make("C[m,n] = sum(k: A[k,m] * B[k,n])", "m=8 n=32 k=16", "f16");
  const absl::StatusOr<LibraryProduct> product =
      MatchLibraryProduct(workload, workload.HighestSizes());
  ASSERT_TRUE(product.ok()) << product.status();
  EXPECT_FALSE(product->a.depth_contiguous);
  EXPECT_FALSE(product->b.depth_contiguous);
  EXPECT_EQ(product->a.stride, 8);
  EXPECT_EQ(product->b.stride, 32);
}

std::vector<std::string> CompetitorsOn(const char* target, const Workload& workload) {
  std::vector<std::string> names;
  for (const Schedule& schedule :
       LibrarySchedules(workload, *FindTarget(target), workload.HighestSizes())) {
    EXPECT_TRUE(IsLibrary(schedule));
    if (names.empty() || names.back() != *schedule.Find("name"))
      names.push_back(*schedule.Find("name"));
  }
  return names;
}
using Names = std::vector<std::string>;

TEST(LibraryProduct, EightAlgorithmsCompeteOnAGpu) {
  const Workload workload = Make("C[m,n] = sum(k: A[m,k] * B[n,k])", "m=8 n=32 k=16", "bf16");
  const std::vector<Schedule> schedules =
      LibrarySchedules(workload, *FindTarget("cuda:h200"), workload.HighestSizes());
  ASSERT_EQ(schedules.size(), 8u);
  EXPECT_EQ(schedules[3].ToString(), "contraction.library{name=cublaslt algo=3}");
  EXPECT_TRUE(IsLibrary(*ParseSchedule(schedules[3].ToString())));
}

TEST(LibraryProduct, TwoLibrariesCompeteOnACpuInSinglePrecision) {
  const char* product = "C[m,n] = sum(k: A[m,k] * B[k,n])";
  EXPECT_EQ(CompetitorsOn("cpu:x86-64-v3", Make(product, "m=8 n=32 k=16", "f32")),
            (Names{"openblas", "onednn"}));
  EXPECT_TRUE(CompetitorsOn("cpu:x86-64-v3", Make(product, "m=8 n=32 k=16", "bf16")).empty());
  EXPECT_TRUE(CompetitorsOn("cpu:x86-64-v3",
                            Make("C[m,n] = relu(sum(k: A[m,k] * B[k,n]))", "m=8 n=32 k=16", "f32"))
                  .empty());
}

TEST(LibraryProduct, EpiloguesThatCublasLtFusesCompete) {
  const Workload workload = Make("C[m,n] = gelu(0.5 * sum(k: A[m,k] * B[n,k]) + bias[n] + R[m,n])",
                                 "m=8 n=32 k=16", "bf16");
  const absl::StatusOr<LibraryProduct> product =
      MatchLibraryProduct(workload, workload.HighestSizes());
  ASSERT_TRUE(product.ok()) << product.status();
  EXPECT_EQ(product->activation, LibraryProduct::Activation::kGelu);
  EXPECT_EQ(product->scale, 0.5);
  EXPECT_TRUE(product->has_residual);
  EXPECT_EQ(product->residual.stride, 32);
  EXPECT_EQ(product->bias_type, ElementType::kBF16);
  std::vector<int> buffers = {product->a.buffer, product->b.buffer, product->bias,
                              product->residual.buffer, product->c.buffer};
  std::sort(buffers.begin(), buffers.end());
  EXPECT_EQ(buffers, (std::vector<int>{0, 1, 2, 3, 4}));
  EXPECT_EQ(CompetitorsOn("cuda:h200", workload), Names{"cublaslt"});
}

TEST(LibraryProduct, BatchesMoveByOneStride) {
  const Workload workload =
      Make("C[b,m,n] = sum(k: A[b,m,k] * B[b,n,k])", "b=3 m=8 n=32 k=16", "f16");
  const absl::StatusOr<LibraryProduct> product =
      MatchLibraryProduct(workload, workload.HighestSizes());
  ASSERT_TRUE(product.ok()) << product.status();
  EXPECT_EQ(product->batches, 3);
  EXPECT_EQ(product->a.batch_stride, 8 * 16);
  EXPECT_EQ(product->b.batch_stride, 32 * 16);
  EXPECT_EQ(product->c.batch_stride, 8 * 32);
}

TEST(LibraryProduct, WhatLibrariesDoNotWriteAlikeDoesNotCompete) {
  const auto competes = [&](const std::string& expression, const std::string& sizes,
                            const std::string& types) {
    return !CompetitorsOn("cuda:h200", Make(expression, sizes, types)).empty();
  };
  const std::string product = "C[m,n] = sum(k: A[m,k] * B[n,k])";
  const std::string sizes = "m=8 n=32 k=16";
  EXPECT_TRUE(competes(product, sizes, "bf16"));
  EXPECT_TRUE(competes(product, sizes, "e4m3,C:bf16"));
  EXPECT_TRUE(competes(product, sizes, "i8,C:i32"));
  EXPECT_TRUE(competes("C[m,n] = relu(sum(k: A[m,k] * B[n,k]))", sizes, "bf16"));
  // FP8 is written along k only, and integers without an epilogue.
  EXPECT_FALSE(competes("C[m,n] = sum(k: A[m,k] * B[k,n])", sizes, "e4m3,C:bf16"));
  EXPECT_FALSE(competes(product, sizes, "e4m3"));
  EXPECT_FALSE(competes("C[m,n] = sum(k: A[m,k] * B[n,k]) + R[m,n]", sizes, "i8,C:i32,R:i32"));
  EXPECT_FALSE(competes("C[m,n] = silu(sum(k: A[m,k] * B[n,k]))", sizes, "bf16"));
  // What is added after the activation, a bias along m, and one of another type.
  EXPECT_FALSE(competes("C[m,n] = relu(sum(k: A[m,k] * B[n,k])) + R[m,n]", sizes, "bf16"));
  EXPECT_FALSE(competes("C[m,n] = sum(k: A[m,k] * B[n,k]) + bias[m]", sizes, "bf16"));
  EXPECT_FALSE(competes("C[m,n] = sum(k: A[m,k] * B[n,k]) + bias[n]", sizes, "bf16,bias:f32"));
  EXPECT_FALSE(competes(product, "m=1..8 n=32 k=16", "bf16"));
  EXPECT_FALSE(competes("Y[r] = sum(c: X[r,c])", "r=8 c=32", "bf16"));
}

}  // namespace
}  // namespace tilewright
