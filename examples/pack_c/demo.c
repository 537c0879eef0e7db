// Calls the three functions of the demo's pack and checks sampled rows of their results against
// plain loops in double. The tuner, LLVM and the database are not needed to build or run this.
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "demo_kernels.h"

enum { M = 1024, N = 1024, K = 1024, T = 512, I = 1024, O = 4096, R = 4096, C = 1024 };
enum { kSampledRows = 16, kTimedCalls = 20 };

static double Now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

static float* Allocate(size_t count) {
  float* values = aligned_alloc(64, (count * sizeof(float) + 63) / 64 * 64);
  if (values == NULL) {
    fprintf(stderr, "out of memory\n");
    exit(1);
  }
  return values;
}

// Uniform in [-1, 1), the same in every run.
static float* Random(size_t count, uint64_t seed) {
  float* values = Allocate(count);
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  for (size_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    values[i] = (float)((double)(state >> 33) / (double)(1u << 30) - 1.0);
  }
  return values;
}

// parallel_for with one POSIX thread for each kernel thread but the first. A program with a thread
// pool hands in its own.
typedef struct {
  void (*body)(void* data, int32_t thread);
  void* data;
  int32_t thread;
} Task;

static void* RunTask(void* argument) {
  const Task* task = argument;
  task->body(task->data, task->thread);
  return NULL;
}

static void ParallelFor(void* user, int32_t threads, void (*body)(void* data, int32_t thread),
                        void* data) {
  (void)user;
  pthread_t* ids = calloc(threads, sizeof *ids);
  Task* tasks = calloc(threads, sizeof *tasks);
  int32_t started = 0;
  for (int32_t t = 1; ids != NULL && tasks != NULL && t < threads; ++t) {
    tasks[t] = (Task){body, data, t};
    if (pthread_create(&ids[t], NULL, RunTask, &tasks[t]) != 0) break;
    started = t;
  }
  body(data, 0);
  for (int32_t t = started + 1; t < threads; ++t) body(data, t);
  for (int32_t t = 1; t <= started; ++t) pthread_join(ids[t], NULL);
  free(tasks);
  free(ids);
}

static double Gelu(double x) { return 0.5 * x * (1.0 + erf(x * 0.70710678118654752)); }

// One row of the expected result.
static void MatmulRow(const float* A, const float* B, int row, double* expected) {
  for (int n = 0; n < N; ++n) {
    double sum = 0;
    for (int k = 0; k < K; ++k) sum += (double)A[row * K + k] * B[k * N + n];
    expected[n] = sum;
  }
}

static void LinearRow(const float* X, const float* W, const float* bias, int row,
                      double* expected) {
  for (int o = 0; o < O; ++o) {
    double sum = bias[o];
    for (int i = 0; i < I; ++i) sum += (double)X[row * I + i] * W[(size_t)o * I + i];
    expected[o] = Gelu(sum);
  }
}

static void SoftmaxRow(const float* X, int row, double* expected) {
  double highest = -INFINITY;
  double sum = 0;
  for (int c = 0; c < C; ++c) highest = fmax(highest, X[row * C + c]);
  for (int c = 0; c < C; ++c) sum += exp(X[row * C + c] - highest);
  for (int c = 0; c < C; ++c) expected[c] = exp(X[row * C + c] - highest) / sum;
}

// The buffers of all three calls: inputs as they come, then the result.
typedef struct {
  const float *a, *b, *c;
  float* out;
} Buffers;

static int Matmul(const Buffers* x, const tw_context* context) {
  return demo_matmul(x->a, x->b, x->out, context);
}
static int Linear(const Buffers* x, const tw_context* context) {
  return demo_linear(x->a, x->b, x->c, x->out, context);
}
static int Softmax(const Buffers* x, const tw_context* context) {
  return demo_softmax(x->a, x->out, context);
}

// Times the calls and prints one line. `operations` of one call, or bytes if `per_byte`.
static int Measure(const char* name, int (*call)(const Buffers*, const tw_context*),
                   const Buffers* buffers, double amount, const char* unit) {
  const tw_context context = {.parallel_for = ParallelFor};
  const int status = call(buffers, &context);
  if (status != TW_OK) {
    fprintf(stderr, "%s: %s\n", name, tw_status_text(status));
    return 1;
  }
  double best = INFINITY;
  for (int i = 0; i < kTimedCalls; ++i) {
    const double begin = Now();
    call(buffers, &context);
    best = fmin(best, Now() - begin);
  }
  printf("%-14s %9.3f ms  %7.1f %s", name, best * 1e3, amount / best * 1e-9, unit);
  return 0;
}

// The largest error of `row` must stay below what f32 sums of that length may lose.
static int CheckRow(const char* name, const float* got, const double* expected, int count,
                    double allowed) {
  for (int i = 0; i < count; ++i) {
    if (!(fabs(got[i] - expected[i]) <= allowed)) {
      fprintf(stderr, "\n%s: column %d is %.9g, expected %.9g\n", name, i, got[i], expected[i]);
      return 1;
    }
  }
  return 0;
}

int main(void) {
  const Buffers matmul = {Random((size_t)M * K, 1), Random((size_t)K * N, 2), NULL,
                          Allocate((size_t)M * N)};
  const Buffers linear = {Random((size_t)T * I, 3), Random((size_t)O * I, 4), Random(O, 5),
                          Allocate((size_t)T * O)};
  const Buffers softmax = {Random((size_t)R * C, 6), NULL, NULL, Allocate((size_t)R * C)};
  double expected[O];
  int failed = 0;

  failed |= Measure("demo_matmul", Matmul, &matmul, 2.0 * M * N * K, "GFLOP/s");
  for (int i = 0; i < kSampledRows && !failed; ++i) {
    const int row = i * (M - 1) / (kSampledRows - 1);
    MatmulRow(matmul.a, matmul.b, row, expected);
    failed |= CheckRow("demo_matmul", matmul.out + (size_t)row * N, expected, N, 1e-3);
  }
  if (!failed) puts("  results match");

  failed |= Measure("demo_linear", Linear, &linear, 2.0 * T * I * O, "GFLOP/s");
  for (int i = 0; i < kSampledRows && !failed; ++i) {
    const int row = i * (T - 1) / (kSampledRows - 1);
    LinearRow(linear.a, linear.b, linear.c, row, expected);
    failed |= CheckRow("demo_linear", linear.out + (size_t)row * O, expected, O, 1e-3);
  }
  if (!failed) puts("  results match");

  failed |= Measure("demo_softmax", Softmax, &softmax, 2.0 * R * C * sizeof(float), "GB/s");
  for (int i = 0; i < kSampledRows && !failed; ++i) {
    const int row = i * (R - 1) / (kSampledRows - 1);
    SoftmaxRow(softmax.a, row, expected);
    failed |= CheckRow("demo_softmax", softmax.out + (size_t)row * C, expected, C, 1e-6);
  }
  if (!failed) puts("  results match");

  puts(failed ? "FAILED" : "OK");
  return failed;
}
