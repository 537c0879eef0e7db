#include "schedule/library_product.h"

#include <gtest/gtest.h>

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

TEST(LibraryProduct, EightAlgorithmsCompeteOnAGpuAndNoneElsewhere) {
  const Workload workload = Make("C[m,n] = sum(k: A[m,k] * B[n,k])", "m=8 n=32 k=16", "bf16");
  const std::vector<Schedule> schedules =
      LibrarySchedules(workload, *FindTarget("cuda:h200"), workload.HighestSizes());
  ASSERT_EQ(schedules.size(), 8u);
  EXPECT_EQ(schedules[3].ToString(), "contraction.library{name=cublaslt algo=3}");
  EXPECT_TRUE(IsLibrary(*ParseSchedule(schedules[3].ToString())));
  EXPECT_TRUE(
      LibrarySchedules(workload, *FindTarget("cpu:x86-64-v3"), workload.HighestSizes()).empty());
}

TEST(LibraryProduct, WhatLibrariesDoNotWriteAlikeDoesNotCompete) {
  const Target target = *FindTarget("cuda:h200");
  const auto competes = [&](const Workload& workload) {
    return !LibrarySchedules(workload, target, workload.HighestSizes()).empty();
  };
  EXPECT_FALSE(competes(Make("C[m,n] = relu(sum(k: A[m,k] * B[n,k]))", "m=8 n=32 k=16", "bf16")));
  EXPECT_FALSE(competes(Make("C[m,n] = sum(k: A[m,k] * B[n,k])", "m=8 n=32 k=16", "i8,C:i32")));
  EXPECT_FALSE(competes(Make("C[m,n] = sum(k: A[m,k] * B[n,k])", "m=1..8 n=32 k=16", "bf16")));
  EXPECT_FALSE(competes(Make("Y[r] = sum(c: X[r,c])", "r=8 c=32", "bf16")));
}

}  // namespace
}  // namespace tilewright
