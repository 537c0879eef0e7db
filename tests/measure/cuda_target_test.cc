#include <gtest/gtest.h>

#include "measure/cuda_device.h"

namespace tilewright {
namespace {

// As the driver describes an H200 SXM.
CudaDeviceFacts H200() {
  CudaDeviceFacts facts;
  facts.name = "NVIDIA H200";
  facts.uuid = "GPU-1b2c3d4e-0000-1111-2222-333344445555";
  facts.major = 9;
  facts.minor = 0;
  facts.multiprocessors = 132;
  facts.clock_khz = 1980000;
  facts.memory_clock_khz = 3201000;
  facts.memory_bus_bits = 6144;
  facts.l2_bytes = 60 << 20;
  facts.shared_memory_per_block = 227 << 10;
  facts.shared_memory_per_multiprocessor = 228 << 10;
  facts.registers_per_multiprocessor = 65536;
  facts.threads_per_multiprocessor = 2048;
  return facts;
}

TEST(CudaTarget, KnownDevicesAreTheirTypedInKinds) {
  CudaDeviceFacts facts = H200();
  EXPECT_EQ(CudaTargetOf(facts)->kind, "cuda:h200");
  EXPECT_EQ(*CudaTargetOf(facts), *FindTarget("cuda:h200"));
  facts.name = "NVIDIA H100 80GB HBM3";
  EXPECT_EQ(CudaTargetOf(facts)->kind, "cuda:h100-sxm");
  facts.name = "NVIDIA A100-SXM4-80GB";
  facts.multiprocessors = 108;
  EXPECT_EQ(CudaTargetOf(facts)->kind, "cuda:a100");
}

TEST(CudaTarget, AnotherFormOfAKnownDeviceIsARowOfItsOwn) {
  CudaDeviceFacts facts = H200();
  facts.name = "NVIDIA H100 PCIe";
  facts.multiprocessors = 114;
  const absl::StatusOr<Target> pcie = CudaTargetOf(facts);
  ASSERT_TRUE(pcie.ok()) << pcie.status();
  EXPECT_EQ(pcie->kind, "cuda:h100-pcie");
  EXPECT_EQ(pcie->llvm_cpu, "sm_90a");
  EXPECT_EQ(pcie->cores, 114);
  // 2 transfers × 3201 MHz × 6144 bits / 8 = 4.917e12 B/s
  EXPECT_EQ(pcie->memory_bytes_per_second, 4'916'736'000'000);
  // A part of a known device is a kind of its own.
  facts = H200();
  facts.multiprocessors = 60;
  EXPECT_EQ(CudaTargetOf(facts)->kind, "cuda:h200/60");
  EXPECT_EQ(CudaTargetOf(facts)->cores, 60);
}

TEST(CudaTarget, AnUnknownDeviceIsMadeOfWhatTheDriverSays) {
  CudaDeviceFacts facts = H200();
  facts.name = "NVIDIA GeForce RTX 4090";
  facts.major = 8;
  facts.minor = 9;
  facts.clock_khz = 0;  // not told
  const absl::StatusOr<Target> target = CudaTargetOf(facts);
  ASSERT_TRUE(target.ok()) << target.status();
  EXPECT_EQ(target->kind, "cuda:geforce-rtx-4090");
  EXPECT_EQ(target->llvm_cpu, "sm_89");
  EXPECT_GT(target->clock_mhz, 2000);  // so high that no time is called impossible
  // Its text parses back to itself.
  EXPECT_EQ(*ParseTarget(target->ToString()), *target);
}

TEST(CudaTarget, DevicesOlderThanKernelsAreWrittenForAreRefused) {
  CudaDeviceFacts facts = H200();
  facts.major = 7;
  const absl::StatusOr<Target> target = CudaTargetOf(facts);
  EXPECT_EQ(target.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_NE(target.status().message().find("7.0"), std::string_view::npos);
}

}  // namespace
}  // namespace tilewright
