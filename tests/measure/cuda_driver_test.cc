// What can be said of the CUDA device without one: with driver tables of the test's own.
#include "measure/cuda_driver.h"

#include <gtest/gtest.h>

#include "measure/cuda_context.h"
#include "measure/cuda_kernel.h"
#include "measure/device_conditions.h"
#include "measure/devices.h"

namespace tilewright {
namespace {

CUresult FakeErrorName(CUresult result, const char** name) {
  *name = result == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR";
  return CUDA_SUCCESS;
}
CUresult FakeErrorString(CUresult, const char** text) {
  *text = "what went wrong";
  return CUDA_SUCCESS;
}

CudaDriver FakeDriver() {
  CudaDriver driver;
  driver.GetErrorName = FakeErrorName;
  driver.GetErrorString = FakeErrorString;
  return driver;
}

TEST(CudaDriver, ErrorsBecomeTheFailuresOfCandidates) {
  const CudaDriver driver = FakeDriver();
  const struct {
    CUresult result;
    FailureKind kind;
    bool sticky;
  } cases[] = {
      {CUDA_ERROR_ILLEGAL_ADDRESS, FailureKind::kOutOfBounds, true},
      {CUDA_ERROR_MISALIGNED_ADDRESS, FailureKind::kCrashed, true},
      {CUDA_ERROR_ILLEGAL_INSTRUCTION, FailureKind::kCrashed, true},
      {CUDA_ERROR_LAUNCH_FAILED, FailureKind::kCrashed, true},
      {CUDA_ERROR_LAUNCH_TIMEOUT, FailureKind::kRunTimeout, true},
      {CUDA_ERROR_OUT_OF_MEMORY, FailureKind::kOutOfMemory, false},
      {CUDA_ERROR_INVALID_VALUE, FailureKind::kLaunchFailed, false},
      {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, FailureKind::kLaunchFailed, false},
      {CUDA_ERROR_INVALID_CLUSTER_SIZE, FailureKind::kLaunchFailed, false},
      {CUDA_ERROR_NO_BINARY_FOR_GPU, FailureKind::kLaunchFailed, false},
      {CUDA_ERROR_ECC_UNCORRECTABLE, FailureKind::kDeviceLost, true},
      {CUDA_ERROR_DEVICE_UNAVAILABLE, FailureKind::kDeviceLost, false},
      {CUDA_ERROR_UNKNOWN, FailureKind::kDeviceLost, true},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(static_cast<int>(one.result));
    EXPECT_EQ(FailureOf(driver.Check(one.result, "cuX")).kind, one.kind);
    EXPECT_EQ(IsSticky(one.result), one.sticky);
  }
  EXPECT_TRUE(driver.Check(CUDA_SUCCESS, "cuX").ok());
  const absl::Status status = driver.Check(CUDA_ERROR_ILLEGAL_ADDRESS, "cuStreamSynchronize");
  EXPECT_EQ(status.message(),
            "cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS 700 (what went wrong)");
}

TEST(CudaDriver, AMachineWithoutOneSaysSo) {
  if (CudaDriver::Load().ok()) GTEST_SKIP() << "there is a GPU here";
  for (const absl::Status& status :
       {CudaDriver::Load().status(), DescribeCudaDevices().status(),
        DescribeDevice({.kind = "cuda"}).status(), CudaContext::Open("GPU-0", "event").status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_NE(status.message().find("CUDA driver"), std::string_view::npos) << status;
  }
}

TEST(CudaDriver, KindsOfDevicesAreListedWhereOneIsUnknown) {
  const absl::Status status = DescribeDevice({.kind = "rocm"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("cpu and cuda"), std::string_view::npos);
}

TEST(CudaUuid, IsWrittenAsNvidiaSmiWritesIt) {
  CUuuid uuid;
  for (int i = 0; i < 16; ++i) uuid.bytes[i] = static_cast<char>(0x10 * i + i);
  EXPECT_EQ(CudaUuidText(uuid), "GPU-00112233-4455-6677-8899-aabbccddeeff");
}

Stride Number(int64_t value) { return Stride{{{value, {}}}}; }

// A [m, k] bf16 tensor, k innermost and fixed to 4096; m is index 0.
TensorMap RowMajor() {
  TensorMap map;
  map.buffer = 1;
  map.type = ElementType::kBF16;
  map.dims = {{Number(4096), Number(1)}, {Stride{{{1, {0}}}}, Number(4096)}};
  map.box = {64, 128};
  map.swizzle_bytes = 128;
  map.l2_promotion_bytes = 256;
  return map;
}

// What the last call of FakeEncode was given.
struct Encoded {
  CUtensorMapDataType type;
  cuuint32_t rank;
  void* address;
  std::vector<cuuint64_t> extents, strides;
  std::vector<cuuint32_t> box, element_strides;
  CUtensorMapSwizzle swizzle;
  CUtensorMapL2promotion promotion;
};
Encoded encoded;

CUresult FakeEncode(CUtensorMap*, CUtensorMapDataType type, cuuint32_t rank, void* address,
                    const cuuint64_t* extents, const cuuint64_t* strides, const cuuint32_t* box,
                    const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                    CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                    CUtensorMapFloatOOBfill fill) {
  EXPECT_EQ(interleave, CU_TENSOR_MAP_INTERLEAVE_NONE);
  EXPECT_EQ(fill, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  encoded = {type,
             rank,
             address,
             {extents, extents + rank},
             {strides, strides + rank - 1},
             {box, box + rank},
             {element_strides, element_strides + rank},
             swizzle,
             promotion};
  return CUDA_SUCCESS;
}

TEST(TensorMaps, AreEncodedAtTheSizesOfTheCall) {
  CudaDriver driver = FakeDriver();
  driver.TensorMapEncodeTiled = FakeEncode;
  const int64_t sizes[] = {200, 4096};
  const absl::StatusOr<TensorMapRequest> request = RequestOf(RowMajor(), sizes);
  ASSERT_TRUE(request.ok()) << request.status();
  CUtensorMap map;
  ASSERT_TRUE(EncodeTensorMap(driver, *request, 0x7000, &map).ok());
  EXPECT_EQ(encoded.type, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
  EXPECT_EQ(encoded.rank, 2u);
  EXPECT_EQ(encoded.address, reinterpret_cast<void*>(0x7000));
  EXPECT_EQ(encoded.extents, (std::vector<cuuint64_t>{4096, 200}));
  EXPECT_EQ(encoded.strides, (std::vector<cuuint64_t>{8192}));  // 4096 × 2 B
  EXPECT_EQ(encoded.box, (std::vector<cuuint32_t>{64, 128}));
  EXPECT_EQ(encoded.element_strides, (std::vector<cuuint32_t>{1, 1}));
  EXPECT_EQ(encoded.swizzle, CU_TENSOR_MAP_SWIZZLE_128B);
  EXPECT_EQ(encoded.promotion, CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
}

TEST(TensorMaps, WhatTheHardwareDoesNotTakeIsNamed) {
  const int64_t sizes[] = {200, 4096};
  const auto refusal = [&](const std::function<void(TensorMap*)>& change) {
    TensorMap map = RowMajor();
    change(&map);
    const absl::StatusOr<TensorMapRequest> request = RequestOf(map, sizes);
    EXPECT_EQ(request.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(request.status().message());
  };
  EXPECT_NE(refusal([](TensorMap* m) { m->dims[1].stride = Number(4097); }).find("8194 B"),
            std::string::npos);
  EXPECT_NE(refusal([](TensorMap* m) { m->box[1] = 257; }).find("257"), std::string::npos);
  EXPECT_NE(refusal([](TensorMap* m) { m->box[0] = 128; }).find("256 B"), std::string::npos);
  EXPECT_NE(refusal([](TensorMap* m) { m->box[0] = 4; }).find("8 B"), std::string::npos);
  EXPECT_NE(refusal([](TensorMap* m) { m->swizzle_bytes = 48; }).find("48"), std::string::npos);
  EXPECT_NE(refusal([](TensorMap* m) { m->l2_promotion_bytes = 96; }).find("96"),
            std::string::npos);
  EXPECT_NE(refusal([](TensorMap* m) { m->box.pop_back(); }).find("box of 1"), std::string::npos);
  EXPECT_NE(refusal([](TensorMap* m) { m->dims[0].extent = Number(0); }).find("0 elements"),
            std::string::npos);
}

TEST(Conditions, ThermalLimitsDropASampleAndPowerCapsDoNot) {
  NvmlViolations violations;
  EXPECT_FALSE(JudgeConditions(violations, 1900, 1980).dropped());
  violations.power_ns = 5;
  // 1400 MHz is 71% of 1980: the power cap explains it.
  EXPECT_FALSE(JudgeConditions(violations, 1400, 1980).dropped());
  EXPECT_TRUE(JudgeConditions(violations, 1400, 1980).power_capped);
  violations.thermal_ns = 5;
  EXPECT_TRUE(JudgeConditions(violations, 1900, 1980).dropped());
  violations = {.power_ns = 0, .thermal_ns = 0, .hardware_ns = 5};
  EXPECT_TRUE(JudgeConditions(violations, 1900, 1980).dropped());
}

TEST(Conditions, ALowClockDropsASampleOnlyWhereItIsKnown) {
  EXPECT_TRUE(JudgeConditions(std::nullopt, 1400, 1980).dropped());
  EXPECT_FALSE(JudgeConditions(std::nullopt, 1500, 1980).dropped());  // 76%
  EXPECT_FALSE(JudgeConditions(std::nullopt, 0, 1980).dropped());     // too short to tell
  EXPECT_FALSE(JudgeConditions(std::nullopt, 1400, 0).dropped());
}

}  // namespace
}  // namespace tilewright
