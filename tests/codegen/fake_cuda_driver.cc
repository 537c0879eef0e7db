#include "tests/codegen/fake_cuda_driver.h"

#include <deque>

namespace tilewright {
namespace {

FakeCuda& Fake() {
  static auto* const fake = new FakeCuda;
  return *fake;
}

void Note(const std::string& call) {
  const std::lock_guard<std::mutex> lock(Fake().mutex);
  Fake().calls.push_back(call);
}

// A CUkernel points to its entry's name.
std::deque<std::string>& Entries() {
  static auto* const entries = new std::deque<std::string>;
  return *entries;
}

const std::string& EntryOf(const void* kernel) { return *static_cast<const std::string*>(kernel); }

}  // namespace

extern "C" {

FakeCuda* fake_cuda() { return &Fake(); }

CUresult cuCtxGetDevice(CUdevice* device) {
  if (Fake().device < 0) return CUDA_ERROR_INVALID_CONTEXT;
  *device = Fake().device;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = Fake().major;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = Fake().minor;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = Fake().multiprocessors;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option*, void**,
                           unsigned int, CUlibraryOption*, void**, unsigned int) {
  Note("cuLibraryLoadData");
  const std::lock_guard<std::mutex> lock(Fake().mutex);
  Fake().loaded.push_back(code);
  *library = reinterpret_cast<CUlibrary>(const_cast<void*>(code));
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary, const char* name) {
  const std::lock_guard<std::mutex> lock(Fake().mutex);
  Entries().emplace_back(name);
  *kernel = reinterpret_cast<CUkernel>(&Entries().back());
  return CUDA_SUCCESS;
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
                              CUdevice device) {
  const bool shared = attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
  const bool cluster = attribute == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED;
  if (!shared && !cluster) return CUDA_ERROR_INVALID_VALUE;
  Note("cuKernelSetAttribute " + EntryOf(kernel) + (shared ? " shared " : " cluster ") +
       std::to_string(value) + " device " + std::to_string(device));
  return CUDA_SUCCESS;
}

CUresult cuMemAllocAsync(CUdeviceptr* pointer, size_t bytes, CUstream) {
  Note("cuMemAllocAsync " + std::to_string(bytes));
  *pointer = Fake().allocated;
  return Fake().allocation_result;
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream) {
  Note(pointer == Fake().allocated ? "cuMemFreeAsync" : "cuMemFreeAsync of something else");
  return CUDA_SUCCESS;
}

CUresult cuMemsetD8Async(CUdeviceptr pointer, unsigned char value, size_t bytes, CUstream) {
  Note("cuMemsetD8Async " + std::to_string(pointer) + " " + std::to_string(value) + " " +
       std::to_string(bytes));
  return CUDA_SUCCESS;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  static thread_local CUstreamCaptureMode current = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::swap(*mode, current);
  Note("capture mode " + std::to_string(current));
  return CUDA_SUCCESS;
}

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                void* address, const cuuint64_t* extents, const cuuint64_t* strides,
                                const cuuint32_t* box, const cuuint32_t* element_strides,
                                CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion l2_promotion, CUtensorMapFloatOOBfill fill) {
  if (reinterpret_cast<uintptr_t>(map) % 64 != 0) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard<std::mutex> lock(Fake().mutex);
  Fake().maps.push_back({type,
                         reinterpret_cast<uint64_t>(address),
                         {extents, extents + rank},
                         {strides, strides + rank - 1},
                         {box, box + rank},
                         {element_strides, element_strides + rank},
                         interleave,
                         swizzle,
                         l2_promotion,
                         fill});
  *map = {};
  map->opaque[0] = Fake().maps.size();
  return CUDA_SUCCESS;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters,
                          void** extra) {
  if (extra != nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (Fake().launch_result != CUDA_SUCCESS) return Fake().launch_result;
  FakeCudaLaunch launch{.entry = EntryOf(function),
                        .grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
                        .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
                        .shared_memory_bytes = config->sharedMemBytes,
                        .stream = config->hStream,
                        .cluster = 0,
                        .dependent = false};
  for (unsigned int i = 0; i < config->numAttrs; ++i) {
    const CUlaunchAttribute& attribute = config->attrs[i];
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
      if (attribute.value.clusterDim.y != 1 || attribute.value.clusterDim.z != 1)
        return CUDA_ERROR_INVALID_VALUE;
      launch.cluster = static_cast<int>(attribute.value.clusterDim.x);
    } else if (attribute.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) {
      launch.dependent = attribute.value.programmaticStreamSerializationAllowed != 0;
    } else {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  const std::lock_guard<std::mutex> lock(Fake().mutex);
  for (int i = 0; i < Fake().parameter_counts[launch.entry]; ++i) {
    launch.parameters.push_back(*static_cast<const uint64_t*>(parameters[i]));
    launch.parameter_addresses.push_back(parameters[i]);
  }
  Fake().launches.push_back(std::move(launch));
  Fake().calls.push_back("cuLaunchKernelEx");
  return CUDA_SUCCESS;
}

}  // extern "C"

}  // namespace tilewright
