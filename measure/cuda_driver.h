// The CUDA driver API as a table of functions, found at run time in libcuda.so.1, so that one
// executable runs on machines with and without a GPU. Tests hand in tables of their own.
//
//   absl::StatusOr<const CudaDriver*> driver = CudaDriver::Load();
//   if (driver.ok()) (*driver)->DeviceGetCount(&count);
//
// Names of versions are those of the headers this file is compiled with; a driver that lacks one is
// too old and refused with that name. Thread-safe.
#ifndef TILEWRIGHT_MEASURE_CUDA_DRIVER_H_
#define TILEWRIGHT_MEASURE_CUDA_DRIVER_H_

#include <cuda.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "measure/failure.h"

namespace tilewright {

// F(member, function): everything that the runner calls.
#define TILEWRIGHT_CUDA_FUNCTIONS(F)                    \
  F(Init, cuInit)                                       \
  F(DriverGetVersion, cuDriverGetVersion)               \
  F(GetErrorName, cuGetErrorName)                       \
  F(GetErrorString, cuGetErrorString)                   \
  F(DeviceGetCount, cuDeviceGetCount)                   \
  F(DeviceGet, cuDeviceGet)                             \
  F(DeviceGetName, cuDeviceGetName)                     \
  F(DeviceGetUuid, cuDeviceGetUuid)                     \
  F(DeviceGetAttribute, cuDeviceGetAttribute)           \
  F(DeviceTotalMem, cuDeviceTotalMem)                   \
  F(DevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain)   \
  F(DevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease) \
  F(CtxSetCurrent, cuCtxSetCurrent)                     \
  F(CtxSynchronize, cuCtxSynchronize)                   \
  F(MemAlloc, cuMemAlloc)                               \
  F(MemFree, cuMemFree)                                 \
  F(MemGetInfo, cuMemGetInfo)                           \
  F(MemHostAlloc, cuMemHostAlloc)                       \
  F(MemFreeHost, cuMemFreeHost)                         \
  F(MemcpyHtoDAsync, cuMemcpyHtoDAsync)                 \
  F(MemcpyDtoHAsync, cuMemcpyDtoHAsync)                 \
  F(MemcpyDtoDAsync, cuMemcpyDtoDAsync)                 \
  F(MemsetD8Async, cuMemsetD8Async)                     \
  F(StreamCreate, cuStreamCreate)                       \
  F(StreamDestroy, cuStreamDestroy)                     \
  F(StreamSynchronize, cuStreamSynchronize)             \
  F(StreamBeginCapture, cuStreamBeginCapture)           \
  F(StreamEndCapture, cuStreamEndCapture)               \
  F(EventCreate, cuEventCreate)                         \
  F(EventDestroy, cuEventDestroy)                       \
  F(EventRecordWithFlags, cuEventRecordWithFlags)       \
  F(EventElapsedTime, cuEventElapsedTime)               \
  F(ModuleLoadDataEx, cuModuleLoadDataEx)               \
  F(ModuleUnload, cuModuleUnload)                       \
  F(ModuleGetFunction, cuModuleGetFunction)             \
  F(FuncSetAttribute, cuFuncSetAttribute)               \
  F(FuncGetAttribute, cuFuncGetAttribute)               \
  F(LaunchKernelEx, cuLaunchKernelEx)                   \
  F(TensorMapEncodeTiled, cuTensorMapEncodeTiled)       \
  F(GraphInstantiate, cuGraphInstantiate)               \
  F(GraphUpload, cuGraphUpload)                         \
  F(GraphLaunch, cuGraphLaunch)                         \
  F(GraphExecDestroy, cuGraphExecDestroy)               \
  F(GraphDestroy, cuGraphDestroy)

struct CudaDriver {
#define TILEWRIGHT_CUDA_MEMBER(member, function) decltype(&::function) member = nullptr;
  TILEWRIGHT_CUDA_FUNCTIONS(TILEWRIGHT_CUDA_MEMBER)
#undef TILEWRIGHT_CUDA_MEMBER

  // Loads the library once per process and initialises it. Unavailable: there is no driver, it is
  // too old, or it finds no device; the text says which and what to do.
  static absl::StatusOr<const CudaDriver*> Load();

  // OK, or what `result` means: "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (out of memory)". The code is
  // FailureOf's: OutOfRange for out of bounds, ResourceExhausted for memory, Unavailable for a lost
  // device, DeadlineExceeded for a time limit of the driver, Aborted for other errors that end the
  // context, else InvalidArgument.
  absl::Status Check(CUresult result, const char* function) const;
};

// True for errors after which every further call of the process fails with the same error: the
// runner must be replaced (CUDA Driver API, cudaError_enum: "the process must be terminated and
// relaunched").
bool IsSticky(CUresult result);
// What a status of CudaDriver::Check means for the candidate that ran.
CandidateFailure FailureOf(const absl::Status& status);

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_CUDA_DRIVER_H_
