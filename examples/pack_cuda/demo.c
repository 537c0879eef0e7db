// Calls the functions of a pack for CUDA (kernels.tw), checks sampled rows of their results against
// plain loops in double, and times graphs of calls. Only the CUDA driver API is used.
#include <cuda.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_kernels.h"

enum { kSampledRows = 8, kCalls = 20, kReplays = 5 };

static void Check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char* text = "unknown error";
  cuGetErrorString(result, &text);
  fprintf(stderr, "%s: %s\n", what, text);
  exit(1);
}

// A product C[m,n] = sum over k of A[m,k] B[k,n], or of A[m,k] B[n,k], with a bias and gelu where
// there is a bias.
typedef struct {
  const char* name;
  int m, n, k;
  int element_bytes;  // 2: bf16, 4: f32
  int transposed;     // B is [n, k]
  int bias;
  int (*call)(CUdeviceptr a, CUdeviceptr b, CUdeviceptr bias, CUdeviceptr c,
              const tw_cuda_context* context);
  size_t (*workspace_bytes)(void);
} Product;

#define AT(type, address) ((type*)(uintptr_t)(address))

#define WITHOUT_BIAS(name, function, type)                                       \
  static int name(CUdeviceptr a, CUdeviceptr b, CUdeviceptr bias, CUdeviceptr c, \
                  const tw_cuda_context* context) {                              \
    (void)bias;                                                                  \
    return function(AT(type, a), AT(type, b), AT(type, c), context);             \
  }
WITHOUT_BIAS(Square, square, uint16_t)
WITHOUT_BIAS(Decode, decode, uint16_t)
WITHOUT_BIAS(Odd, odd, uint16_t)
WITHOUT_BIAS(Single, single, float)
enum { kMlpRows = 777 };  // any number in the workload's range
static int Mlp(CUdeviceptr a, CUdeviceptr b, CUdeviceptr bias, CUdeviceptr c,
               const tw_cuda_context* context) {
  return mlp(AT(uint16_t, a), AT(uint16_t, b), AT(uint16_t, bias), AT(uint16_t, c), kMlpRows,
             context);
}

static const Product kProducts[] = {
    {"square", 4096, 4096, 4096, 2, 0, 0, Square, square_workspace_bytes},
    {"decode", 16, 4096, 4096, 2, 1, 0, Decode, decode_workspace_bytes},
    {"odd", 1021, 1031, 1033, 2, 0, 0, Odd, odd_workspace_bytes},
    {"single", 512, 512, 512, 4, 0, 0, Single, single_workspace_bytes},
    {"mlp", kMlpRows, 4096, 1024, 2, 1, 1, Mlp, mlp_workspace_bytes},
};

// A tensor on the host, as the device has it.
typedef struct {
  void* data;
  size_t count;
  int element_bytes;
} Tensor;

static double Get(const Tensor* tensor, size_t i) {
  if (tensor->element_bytes == 4) return ((const float*)tensor->data)[i];
  const uint32_t bits = (uint32_t)((const uint16_t*)tensor->data)[i] << 16;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static void Set(Tensor* tensor, size_t i, float value) {
  if (tensor->element_bytes == 4) {
    ((float*)tensor->data)[i] = value;
    return;
  }
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  ((uint16_t*)tensor->data)[i] =
      (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);  // nearest even
}

static Tensor Allocate(size_t count, int element_bytes) {
  const Tensor tensor = {malloc(count * (size_t)element_bytes), count, element_bytes};
  if (tensor.data == NULL) {
    fprintf(stderr, "out of memory\n");
    exit(1);
  }
  return tensor;
}

// Uniform in [-1, 1), the same in every run.
static Tensor Random(size_t count, int element_bytes, uint64_t seed) {
  Tensor tensor = Allocate(count, element_bytes);
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  for (size_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    Set(&tensor, i, (float)((double)(state >> 33) / (double)(1u << 30) - 1.0));
  }
  return tensor;
}

static CUdeviceptr Upload(const Tensor* tensor) {
  CUdeviceptr address = 0;
  const size_t bytes = tensor->count * (size_t)tensor->element_bytes;
  Check(cuMemAlloc(&address, bytes), "cuMemAlloc");
  Check(cuMemcpyHtoD(address, tensor->data, bytes), "cuMemcpyHtoD");
  return address;
}

static double Gelu(double x) { return 0.5 * x * (1.0 + erf(x * 0.70710678118654752)); }

// One row of the expected result.
static void ExpectedRow(const Product* p, const Tensor* a, const Tensor* b, const Tensor* bias,
                        int row, double* expected) {
  for (int n = 0; n < p->n; ++n) expected[n] = p->bias ? Get(bias, (size_t)n) : 0;
  for (int outer = 0; outer < (p->transposed ? p->n : p->k); ++outer) {
    for (int inner = 0; inner < (p->transposed ? p->k : p->n); ++inner) {
      const int n = p->transposed ? outer : inner;
      const int k = p->transposed ? inner : outer;
      const size_t at = (size_t)outer * (size_t)(p->transposed ? p->k : p->n) + (size_t)inner;
      expected[n] += Get(a, (size_t)row * (size_t)p->k + (size_t)k) * Get(b, at);
    }
  }
  for (int n = 0; n < p->n && p->bias; ++n) expected[n] = Gelu(expected[n]);
}

static int CheckRows(const Product* p, const Tensor* a, const Tensor* b, const Tensor* bias,
                     const Tensor* c) {
  double* expected = malloc((size_t)p->n * sizeof *expected);
  int failed = expected == NULL;
  for (int i = 0; i < kSampledRows && !failed; ++i) {
    const int row = i * (p->m - 1) / (kSampledRows - 1);
    ExpectedRow(p, a, b, bias, row, expected);
    for (int n = 0; n < p->n && !failed; ++n) {
      const double got = Get(c, (size_t)row * (size_t)p->n + (size_t)n);
      // Rounding of a bf16 result, and what f32 sums of that length may lose.
      const double allowed =
          (p->element_bytes == 2 ? 0x1p-8 : 0) * fabs(expected[n]) + 1e-4 * sqrt(p->k);
      if (fabs(got - expected[n]) <= allowed) continue;
      fprintf(stderr, "%s: [%d, %d] is %.9g, expected %.9g\n", p->name, row, n, got, expected[n]);
      failed = 1;
    }
  }
  free(expected);
  return failed;
}

// Seconds of one call, from a graph of calls one after another.
static double Time(const Product* p, const CUdeviceptr* address, const tw_cuda_context* context) {
  CUgraph graph;
  CUgraphExec executable;
  CUevent begin, end;
  Check(cuStreamBeginCapture(context->stream, CU_STREAM_CAPTURE_MODE_GLOBAL), "capture");
  int status = TW_CUDA_OK;
  for (int i = 0; i < kCalls && status == TW_CUDA_OK; ++i)
    status = p->call(address[0], address[1], address[2], address[3], context);
  Check(cuStreamEndCapture(context->stream, &graph), "cuStreamEndCapture");
  if (status != TW_CUDA_OK) {
    fprintf(stderr, "%s: while capturing: %s (%d)\n", p->name, tw_cuda_status_text(status), status);
    exit(1);
  }
  Check(cuGraphInstantiate(&executable, graph, 0), "cuGraphInstantiate");
  Check(cuEventCreate(&begin, CU_EVENT_DEFAULT), "cuEventCreate");
  Check(cuEventCreate(&end, CU_EVENT_DEFAULT), "cuEventCreate");
  float best = INFINITY;
  for (int i = 0; i < kReplays; ++i) {
    float milliseconds = 0;
    Check(cuEventRecord(begin, context->stream), "cuEventRecord");
    Check(cuGraphLaunch(executable, context->stream), "cuGraphLaunch");
    Check(cuEventRecord(end, context->stream), "cuEventRecord");
    Check(cuEventSynchronize(end), "running");
    Check(cuEventElapsedTime(&milliseconds, begin, end), "cuEventElapsedTime");
    best = fminf(best, milliseconds);
  }
  cuEventDestroy(begin);
  cuEventDestroy(end);
  cuGraphExecDestroy(executable);
  cuGraphDestroy(graph);
  return best * 1e-3 / kCalls;
}

static int Run(const Product* p, CUstream stream) {
  const size_t m = (size_t)p->m, n = (size_t)p->n, k = (size_t)p->k;
  const Tensor host[] = {Random(m * k, p->element_bytes, 1), Random(k * n, p->element_bytes, 2),
                         Random(n, p->element_bytes, 3), Allocate(m * n, p->element_bytes)};
  memset(host[3].data, 0xff, m * n * (size_t)p->element_bytes);  // not a number
  CUdeviceptr address[4];
  for (int i = 0; i < 4; ++i) address[i] = Upload(&host[i]);
  CUdeviceptr workspace = 0;
  const size_t workspace_bytes = p->workspace_bytes();
  if (workspace_bytes > 0) Check(cuMemAlloc(&workspace, workspace_bytes), "cuMemAlloc");
  const tw_cuda_context context = {stream, (void*)(uintptr_t)workspace, workspace_bytes};
  const int status = p->call(address[0], address[1], address[2], address[3], &context);
  if (status != TW_CUDA_OK) {
    fprintf(stderr, "%s: %s (%d)\n", p->name, tw_cuda_status_text(status), status);
    return 1;
  }
  Check(cuStreamSynchronize(stream), p->name);
  Check(cuMemcpyDtoH(host[3].data, address[3], m * n * (size_t)p->element_bytes), "cuMemcpyDtoH");
  const int failed = CheckRows(p, &host[0], &host[1], &host[2], &host[3]);
  if (!failed) {
    const double seconds = Time(p, address, &context);
    printf("%-7s %5dx%5dx%5d  workspace %8zu B  %9.2f us  %7.1f TFLOP/s  results match\n", p->name,
           p->m, p->n, p->k, workspace_bytes, seconds * 1e6, 2e-12 * p->m * p->n * p->k / seconds);
  }
  for (int i = 0; i < 4; ++i) {
    cuMemFree(address[i]);
    free(host[i].data);
  }
  if (workspace != 0) cuMemFree(workspace);
  return failed;
}

int main(void) {
  CUdevice device;
  CUcontext context;
  CUstream stream;
  Check(cuInit(0), "cuInit");
  Check(cuDeviceGet(&device, 0), "cuDeviceGet");
  Check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  Check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  Check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  const int status = gpu_kernels_load();
  if (status != TW_CUDA_OK) {
    fprintf(stderr, "the pack cannot be used: %s (%d)\n", tw_cuda_status_text(status), status);
    return 1;
  }
  int failed = 0;
  for (size_t i = 0; i < sizeof kProducts / sizeof kProducts[0]; ++i)
    failed |= Run(&kProducts[i], stream);
  puts(failed ? "FAILED" : "OK");
  return failed;
}
