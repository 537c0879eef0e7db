#include "codegen/pack_cuda_launcher.h"

namespace tilewright {

const std::string_view kCudaContextText = R"(#ifndef TILEWRIGHT_PACK_CUDA_CONTEXT_1
#define TILEWRIGHT_PACK_CUDA_CONTEXT_1

struct CUstream_st;

// Where a function's kernels run: in the CUDA context that is current to the calling thread. Null, or all fields zero: its
// default stream, workspace from the device's memory pool. The functions may be called from many threads at once, and while a
// stream is captured.
typedef struct tw_cuda_context {
  struct CUstream_st* stream;  // a CUstream or cudaStream_t of the current context; null: its default stream
  // Device memory aligned to 256 bytes that nothing else uses until this call's kernels have ended, so one for each stream.
  // Null: each call that needs one allocates and frees it in the stream, which takes longer than a small kernel.
  void* workspace;
  size_t workspace_bytes;  // at least what NAME_workspace_bytes() says
} tw_cuda_context;

// What a function returns. TW_CUDA_OK: the kernels are in the stream; what goes wrong while they run is told by later calls
// of CUDA. Else nothing was started, except with TW_CUDA_DRIVER_ERROR, after which the outputs are undefined.
enum {
  TW_CUDA_OK = 0,
  TW_CUDA_NULL_POINTER = 1,       // a tensor is null
  TW_CUDA_MISALIGNED = 2,         // a tensor is not aligned as its argument's comment says
  TW_CUDA_SIZE_OUT_OF_RANGE = 3,  // a size is outside its range
  TW_CUDA_UNSUITED_DEVICE = 4,    // the device has another compute capability than the pack's, or fewer multiprocessors
  TW_CUDA_BAD_WORKSPACE = 5,      // the given workspace is too small or not aligned to 256 bytes
  TW_CUDA_OUT_OF_MEMORY = 6,      // the device has no memory for the workspace or the code
  TW_CUDA_NO_DRIVER = 7,          // libcuda.so.1 is not there or older than CUDA 12.0
  TW_CUDA_NO_CONTEXT = 8,         // the calling thread has no current CUDA context
  TW_CUDA_DRIVER_ERROR = 1000     // and above: 1000 + the driver's CUresult
};

static inline const char* tw_cuda_status_text(int status) {
  switch (status) {
    case TW_CUDA_OK: return "ok";
    case TW_CUDA_NULL_POINTER: return "a tensor is null";
    case TW_CUDA_MISALIGNED: return "a tensor is not aligned";
    case TW_CUDA_SIZE_OUT_OF_RANGE: return "a size is outside its range";
    case TW_CUDA_UNSUITED_DEVICE: return "the device's compute capability or number of multiprocessors is not what the pack was built for";
    case TW_CUDA_BAD_WORKSPACE: return "the workspace is too small or not aligned";
    case TW_CUDA_OUT_OF_MEMORY: return "the device is out of memory";
    case TW_CUDA_NO_DRIVER: return "there is no CUDA driver of 12.0 or newer";
    case TW_CUDA_NO_CONTEXT: return "the calling thread has no current CUDA context";
    default: return status >= TW_CUDA_DRIVER_ERROR ? "the CUDA driver failed: its CUresult is the status less 1000" : "unknown status";
  }
}

#endif  // TILEWRIGHT_PACK_CUDA_CONTEXT_1
)";

const std::string_view kCudaTypesText = R"(
// A parameter of a kernel: 8 bytes, or a tensor map.
enum { TW_FROM_BUFFER, TW_FROM_SIZE, TW_FROM_CONSTANT, TW_FROM_WORKSPACE, TW_FROM_TENSOR_MAP };
typedef struct tw_argument {
  int source;
  int32_t number;  // of the buffer, size or tensor map
  int64_t value;   // the constant; bytes from the workspace's beginning
} tw_argument;

typedef struct tw_launch {
  int32_t function;  // its number in tw_functions
  uint32_t grid[3], block, cluster, shared_memory_bytes;
  int dependent;  // may begin before the kernel ahead of it in the stream has ended
  int32_t argument_count;
  const tw_argument* arguments;
} tw_launch;

// coefficient * the product of the sizes with these numbers
typedef struct tw_term {
  int64_t coefficient;
  int32_t factor_count;
  int32_t factors[TW_MOST_FACTORS];
} tw_term;

// A sum of consecutive terms of the kernel's.
typedef struct tw_sum {
  int32_t first, count;
} tw_sum;

typedef struct tw_dimension {
  tw_sum extent, stride;  // elements
  uint32_t box;
} tw_dimension;

typedef struct tw_map {
  int32_t buffer;  // -1: the workspace
  int64_t offset_bytes;
  CUtensorMapDataType type;
  int32_t element_bytes, rank;
  const tw_dimension* dimensions;  // innermost first
  CUtensorMapSwizzle swizzle;
  CUtensorMapL2promotion l2_promotion;
} tw_map;

typedef struct tw_kernel {
  tw_domain domain;
  int32_t launch_count;
  const tw_launch* launches;
  const tw_map* maps;
  const tw_term* terms;
  size_t workspace_bytes, workspace_alignment;
  size_t workspace_zeroed;  // its first bytes, before every call
} tw_kernel;

typedef struct tw_function {
  int32_t object;  // its number in tw_objects
  const char* entry;
  int32_t shared_memory_bytes, cluster;  // the most of its launches
} tw_function;
)";

const std::string_view kCudaCodeText = R"(
// libcuda is looked for when the first function is called, so that a program which has this pack links where no driver is
// installed and starts on machines without a GPU. Names of versions are those of the cuda.h that this is compiled with.
#define TW_DRIVER(X)                                                                                        \
  X(cuCtxGetDevice) X(cuDeviceGetAttribute) X(cuKernelSetAttribute) X(cuLaunchKernelEx) X(cuLibraryGetKernel) \
  X(cuLibraryLoadData) X(cuMemAllocAsync) X(cuMemFreeAsync) X(cuMemsetD8Async) X(cuTensorMapEncodeTiled)    \
  X(cuThreadExchangeStreamCaptureMode)
#define TW_NAME(name) TW_QUOTE(name)
#define TW_QUOTE(name) #name
#define TW_DECLARE(name) static __typeof__(&name) tw_##name;
TW_DRIVER(TW_DECLARE)

enum { TW_MOST_DEVICES = 256 };
// What is loaded, once for the process; the driver brings the code into each context by itself. Written under the mutex, read
// after the flags that say so.
static pthread_mutex_t tw_mutex = PTHREAD_MUTEX_INITIALIZER;
static int tw_driver_found;
static int tw_device_ready[TW_MOST_DEVICES];
static CUlibrary tw_libraries[TW_OBJECT_COUNT];
static CUkernel tw_kernels[TW_FUNCTION_COUNT];

static int tw_status_of(CUresult result) {
  switch (result) {
    case CUDA_SUCCESS: return TW_CUDA_OK;
    case CUDA_ERROR_OUT_OF_MEMORY: return TW_CUDA_OUT_OF_MEMORY;
    case CUDA_ERROR_NOT_INITIALIZED:
    case CUDA_ERROR_INVALID_CONTEXT: return TW_CUDA_NO_CONTEXT;
    default: return TW_CUDA_DRIVER_ERROR + (int)result;
  }
}

static int tw_open_driver(void) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return TW_CUDA_NO_DRIVER;
  void* symbol;
#define TW_FIND(name)                                      \
  symbol = dlsym(library, TW_NAME(name));                  \
  if (symbol == NULL) return TW_CUDA_NO_DRIVER;            \
  memcpy((void*)&tw_##name, (void*)&symbol, sizeof symbol);
  TW_DRIVER(TW_FIND)
  return TW_CUDA_OK;
}

static int tw_find_driver(void) {
  if (__atomic_load_n(&tw_driver_found, __ATOMIC_ACQUIRE)) return TW_CUDA_OK;
  pthread_mutex_lock(&tw_mutex);
  const int status = tw_driver_found ? TW_CUDA_OK : tw_open_driver();
  if (status == TW_CUDA_OK) __atomic_store_n(&tw_driver_found, 1, __ATOMIC_RELEASE);
  pthread_mutex_unlock(&tw_mutex);
  return status;
}

static int tw_check_device(CUdevice device) {
  int major = 0, minor = 0, multiprocessors = 0;
  CUresult result = tw_cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  if (result == CUDA_SUCCESS)
    result = tw_cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  if (result == CUDA_SUCCESS)
    result = tw_cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
  if (result != CUDA_SUCCESS) return tw_status_of(result);
  const int later = major > TW_COMPUTE_MAJOR || (major == TW_COMPUTE_MAJOR && minor > TW_COMPUTE_MINOR);
  const int same = major == TW_COMPUTE_MAJOR && minor == TW_COMPUTE_MINOR;
  return (same || (later && TW_LATER_ONES_TOO)) && multiprocessors >= TW_MULTIPROCESSORS ? TW_CUDA_OK
                                                                                       : TW_CUDA_UNSUITED_DEVICE;
}

static int tw_load_code(void) {
  for (int32_t i = 0; i < TW_OBJECT_COUNT; ++i) {
    if (tw_libraries[i] != NULL) continue;
    CUlibrary library = NULL;
    const CUresult result = tw_cuLibraryLoadData(&library, tw_objects[i], NULL, NULL, 0, NULL, NULL, 0);
    if (result != CUDA_SUCCESS) return tw_status_of(result);
    tw_libraries[i] = library;
  }
  for (int32_t i = 0; i < TW_FUNCTION_COUNT; ++i) {
    const tw_function* function = &tw_functions[i];
    const CUresult result = tw_cuLibraryGetKernel(&tw_kernels[i], tw_libraries[function->object], function->entry);
    if (result != CUDA_SUCCESS) return tw_status_of(result);
  }
  return TW_CUDA_OK;
}

// More than 48 KiB of dynamic shared memory and clusters of more than 8 blocks must be allowed on each device.
static int tw_allow_launches(CUdevice device) {
  for (int32_t i = 0; i < TW_FUNCTION_COUNT; ++i) {
    const tw_function* function = &tw_functions[i];
    CUresult result = CUDA_SUCCESS;
    if (function->shared_memory_bytes > 48 * 1024) {
      result = tw_cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function->shared_memory_bytes,
                                       tw_kernels[i], device);
    }
    if (result == CUDA_SUCCESS && function->cluster > 8) {
      result =
          tw_cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1, tw_kernels[i], device);
    }
    if (result != CUDA_SUCCESS) return tw_status_of(result);
  }
  return TW_CUDA_OK;
}

// Makes the current context's device ready for every kernel of the pack; after the first time two loads and a call of the driver.
static int tw_make_ready(void) {
  int status = tw_find_driver();
  if (status != TW_CUDA_OK) return status;
  CUdevice device = 0;
  const CUresult result = tw_cuCtxGetDevice(&device);
  if (result != CUDA_SUCCESS) return tw_status_of(result);
  const int remembered = device >= 0 && device < TW_MOST_DEVICES;
  if (remembered && __atomic_load_n(&tw_device_ready[device], __ATOMIC_ACQUIRE)) return TW_CUDA_OK;
  // Loading is no work of a stream: it must not disturb one that this thread or another captures.
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  (void)tw_cuThreadExchangeStreamCaptureMode(&mode);
  pthread_mutex_lock(&tw_mutex);
  // Another thread may have been here since.
  const int is_ready = remembered && __atomic_load_n(&tw_device_ready[device], __ATOMIC_RELAXED);
  if (!is_ready) status = tw_check_device(device);
  if (!is_ready && status == TW_CUDA_OK) status = tw_load_code();
  if (!is_ready && status == TW_CUDA_OK) status = tw_allow_launches(device);
  if (status == TW_CUDA_OK && remembered) __atomic_store_n(&tw_device_ready[device], 1, __ATOMIC_RELEASE);
  pthread_mutex_unlock(&tw_mutex);
  (void)tw_cuThreadExchangeStreamCaptureMode(&mode);
  return status;
}

static int64_t tw_evaluate(const tw_term* terms, tw_sum sum, const int64_t* sizes) {
  int64_t total = 0;
  for (int32_t t = sum.first; t < sum.first + sum.count; ++t) {
    int64_t product = terms[t].coefficient;
    for (int32_t f = 0; f < terms[t].factor_count; ++f) product *= sizes[terms[t].factors[f]];
    total += product;
  }
  return total;
}

// What lies outside the tensor reads as zero.
static CUresult tw_encode(const tw_map* map, const tw_term* terms, const int64_t* sizes, uint64_t address,
                          CUtensorMap* encoded) {
  cuuint64_t extents[5], strides_bytes[5];
  cuuint32_t box[5], element_strides[5];
  for (int32_t d = 0; d < map->rank; ++d) {
    const tw_dimension* dimension = &map->dimensions[d];
    extents[d] = (cuuint64_t)tw_evaluate(terms, dimension->extent, sizes);
    // That of dimension 0 is one element and is not told.
    if (d > 0) strides_bytes[d - 1] = (cuuint64_t)(tw_evaluate(terms, dimension->stride, sizes) * map->element_bytes);
    box[d] = dimension->box;
    element_strides[d] = 1;
  }
  return tw_cuTensorMapEncodeTiled(encoded, map->type, (cuuint32_t)map->rank, (void*)(uintptr_t)address, extents,
                                   strides_bytes, box, element_strides, CU_TENSOR_MAP_INTERLEAVE_NONE, map->swizzle,
                                   map->l2_promotion, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

typedef union tw_slot {
  uint64_t value;
  CUtensorMap map;
} tw_slot;

static CUresult tw_fill(const tw_argument* argument, const tw_kernel* kernel, void* const* buffers, const int64_t* sizes,
                        CUdeviceptr workspace, tw_slot* slot) {
  switch (argument->source) {
    case TW_FROM_BUFFER: slot->value = (uint64_t)(uintptr_t)buffers[argument->number]; break;
    case TW_FROM_SIZE: slot->value = (uint64_t)sizes[argument->number]; break;
    case TW_FROM_CONSTANT: slot->value = (uint64_t)argument->value; break;
    case TW_FROM_WORKSPACE: slot->value = workspace + (uint64_t)argument->value; break;
    case TW_FROM_TENSOR_MAP: {
      const tw_map* map = &kernel->maps[argument->number];
      const uint64_t base = map->buffer < 0 ? workspace : (uint64_t)(uintptr_t)buffers[map->buffer];
      return tw_encode(map, kernel->terms, sizes, base + (uint64_t)map->offset_bytes, &slot->map);
    }
  }
  return CUDA_SUCCESS;
}

// `after_kernel`: no memory operation of this call precedes the launch, which a dependent one could not follow.
static CUresult tw_run(const tw_launch* launch, const tw_kernel* kernel, void* const* buffers, const int64_t* sizes,
                       CUdeviceptr workspace, CUstream stream, int after_kernel) {
  tw_slot slots[TW_MOST_ARGUMENTS];
  void* parameters[TW_MOST_ARGUMENTS];
  for (int32_t i = 0; i < launch->argument_count; ++i) {
    const CUresult result = tw_fill(&launch->arguments[i], kernel, buffers, sizes, workspace, &slots[i]);
    if (result != CUDA_SUCCESS) return result;
    parameters[i] = &slots[i];
  }
  CUlaunchAttribute attributes[2];
  CUlaunchConfig config;
  memset((void*)attributes, 0, sizeof attributes);
  memset((void*)&config, 0, sizeof config);
  config.gridDimX = launch->grid[0];
  config.gridDimY = launch->grid[1];
  config.gridDimZ = launch->grid[2];
  config.blockDimX = launch->block;
  config.blockDimY = 1;
  config.blockDimZ = 1;
  config.sharedMemBytes = launch->shared_memory_bytes;
  config.hStream = stream;
  config.attrs = attributes;
  if (launch->cluster > 1) {
    CUlaunchAttribute* attribute = &attributes[config.numAttrs++];
    attribute->id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute->value.clusterDim.x = launch->cluster;
    attribute->value.clusterDim.y = 1;
    attribute->value.clusterDim.z = 1;
  }
  if (launch->dependent && after_kernel) {
    CUlaunchAttribute* attribute = &attributes[config.numAttrs++];
    attribute->id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attribute->value.programmaticStreamSerializationAllowed = 1;
  }
  return tw_cuLaunchKernelEx(&config, (CUfunction)tw_kernels[launch->function], parameters, NULL);
}

static int tw_call(const tw_case* cases, int32_t case_count, void* const* buffers, const int64_t* sizes,
                   const tw_cuda_context* context) {
  const tw_kernel* kernel = tw_choose(cases, case_count, sizes);
  if (kernel == NULL) return TW_CUDA_SIZE_OUT_OF_RANGE;
  int status = tw_check_buffers(&kernel->domain, buffers);
  if (status != TW_CUDA_OK) return status;
  const CUstream stream = context != NULL ? context->stream : NULL;
  const int given = context != NULL && context->workspace != NULL;
  CUdeviceptr workspace = given ? (CUdeviceptr)(uintptr_t)context->workspace : 0;
  const int needed = kernel->workspace_bytes != 0;
  if (needed && given &&
      (context->workspace_bytes < kernel->workspace_bytes || workspace % kernel->workspace_alignment != 0)) {
    return TW_CUDA_BAD_WORKSPACE;
  }
  status = tw_make_ready();
  if (status != TW_CUDA_OK) return status;
  const int allocated = needed && !given;
  CUresult result = CUDA_SUCCESS;
  if (allocated) {
    result = tw_cuMemAllocAsync(&workspace, kernel->workspace_bytes, stream);
    if (result != CUDA_SUCCESS) return tw_status_of(result);
  }
  const int zeroed = kernel->workspace_zeroed != 0;
  if (zeroed) result = tw_cuMemsetD8Async(workspace, 0, kernel->workspace_zeroed, stream);
  for (int32_t i = 0; i < kernel->launch_count && result == CUDA_SUCCESS; ++i) {
    result = tw_run(&kernel->launches[i], kernel, buffers, sizes, workspace, stream, i > 0 || !(allocated || zeroed));
  }
  if (allocated) {
    const CUresult freed = tw_cuMemFreeAsync(workspace, stream);
    if (result == CUDA_SUCCESS) result = freed;
  }
  return tw_status_of(result);
}
)";

}  // namespace tilewright
