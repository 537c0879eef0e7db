// Kernels for GPUs, as far as they can be told without one: PTX goldens, recipes, what ptxas makes
// of sampled schedules.
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "codegen/ptxas.h"
#include "codegen/writer.h"

namespace tilewright {
namespace {

using ::testing::HasSubstr;

const Target& H100() {
  static const auto* const kTarget = new Target(*FindTarget("cuda:h100-sxm"));
  return *kTarget;
}

bool HasPtxas() {
  const auto ptxas = FindPtxas();
  return ptxas.ok() && !ptxas->path.empty();
}

Workload MakeWorkload(const std::string& expression, const std::string& sizes,
                      const std::string& types) {
  auto workload = Workload::Make(expression, {sizes, types});
  EXPECT_TRUE(workload.ok()) << workload.status();
  return *workload;
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The PTX of a candidate, through the dump.
std::string PtxOf(const Candidate& candidate, const std::string& name, Kernel* kernel = nullptr) {
  const std::filesystem::path directory =
      std::filesystem::path(::testing::TempDir()) /
      ("tilewright-ptx-" + std::to_string(getpid()) + "-" + name);
  auto written = WriteKernel(candidate, DefaultCatalogue(), {directory.string()});
  EXPECT_TRUE(written.ok()) << candidate.schedule.ToString() << ": " << written.status();
  if (written.ok() && kernel != nullptr) *kernel = *written;
  std::string ptx = ReadFile(directory / "05-kernel.ptx");
  std::filesystem::remove_all(directory);
  return ptx;
}

TEST(Nvptx, ALaunchIsAGridWithBuffersSizesAndWorkspace) {
  const Workload workload = MakeWorkload(
      "h[r] = max(c: X[r,c]); z[r] = sum(c: exp(X[r,c] - h[r])); Y[r,c] = exp(X[r,c] - h[r]) / "
      "z[r]",
      "r=1..100000 c=64", "f32");
  Kernel kernel;
  const std::string ptx = PtxOf(
      {workload, H100(), *ParseSchedule("row_reduction.naive{block=256}")}, "softmax", &kernel);
  ASSERT_EQ(kernel.launches.size(), 3u);
  // 100000 rows in blocks of 256: 391 blocks. 6.4e6 elements would be 25000 blocks, but the device
  // holds 132 SMs x 2048 / 256 = 1056.
  EXPECT_EQ(kernel.launches[0].grid, (std::array<int, 3>{391, 1, 1}));
  EXPECT_EQ(kernel.launches[2].grid, (std::array<int, 3>{1056, 1, 1}));
  EXPECT_EQ(kernel.launches[0].block, 256);
  ASSERT_EQ(kernel.launches[0].arguments.size(), 4u);
  EXPECT_EQ(kernel.launches[0].arguments[2].kind, Argument::Kind::kSize);
  EXPECT_EQ(kernel.launches[0].arguments[3].kind, Argument::Kind::kWorkspace);
  // Two rows of f32 values: h and z.
  EXPECT_GE(kernel.workspace.bytes, 2 * 4 * 100000);
  EXPECT_EQ(kernel.digests.assembly, Sha256Hex(ptx));
  EXPECT_THAT(ptx, HasSubstr(".visible .entry " + kernel.launches[2].entry));
  EXPECT_THAT(ptx, HasSubstr(".reqntid 256, 1, 1"));
  const auto recipe = ParseRecipe(kernel.RecipeJson());
  ASSERT_TRUE(recipe.ok()) << recipe.status();
  EXPECT_EQ(recipe->launches, kernel.launches);
}

TEST(Nvptx, TheObjectIsACubinWherePtxasIsFound) {
  const Workload workload = MakeWorkload("Y[i] = X[i] * 2", "i=1000", "f32");
  Kernel kernel;
  const std::string ptx =
      PtxOf({workload, H100(), *ParseSchedule("pointwise.naive{block=64}")}, "double", &kernel);
  ASSERT_EQ(kernel.objects.size(), 1u);
  if (!HasPtxas()) {
    EXPECT_EQ(kernel.objects[0].format, "ptx-sm_90a");
    EXPECT_EQ(kernel.objects[0].bytes, ptx);
    return;
  }
  EXPECT_EQ(kernel.objects[0].format, "cubin-sm_90a");
  EXPECT_EQ(kernel.objects[0].bytes.substr(0, 4), "\177ELF");
  EXPECT_THAT(kernel.resources,
              ::testing::Contains(::testing::Pair("registers", ::testing::Gt(0))));
}

TEST(Nvptx, TheToolchainNamesPtxas) {
  EXPECT_THAT(ToolchainId(H100()),
              ::testing::MatchesRegex("tilewright-codegen [0-9]+, LLVM 19\\..*, (no ptxas|ptxas "
                                      "[0-9]+\\.[0-9]+\\.[0-9]+)"));
}

TEST(Nvptx, AnUnknownArchitectureIsRefused) {
  Target target = H100();
  target.llvm_cpu = "sm_1000";
  const auto kernel = WriteKernel({MakeWorkload("Y[i] = X[i]", "i=8", "f32"), target,
                                   *ParseSchedule("pointwise.naive{block=64}")},
                                  DefaultCatalogue());
  EXPECT_THAT(kernel.status().message(), HasSubstr("'sm_1000' is not a GPU architecture of LLVM"));
}

// Golden PTX. TILEWRIGHT_REWRITE_GOLDEN=1 rewrites the files; a change of them needs a new
// kCodegenVersion.
struct GoldenCase {
  std::string file;
  std::string expression;
  std::string sizes;
  std::string types;
  std::string schedule;
};

class GoldenPtx : public ::testing::TestWithParam<GoldenCase> {};

TEST_P(GoldenPtx, IsWhatItWas) {
  const GoldenCase& golden = GetParam();
  const Workload workload = MakeWorkload(golden.expression, golden.sizes, golden.types);
  const std::string written =
      PtxOf({workload, H100(), *ParseSchedule(golden.schedule)}, golden.file);
  const std::filesystem::path path =
      std::filesystem::path(TILEWRIGHT_GOLDEN) / (golden.file + ".ptx");
  if (std::getenv("TILEWRIGHT_REWRITE_GOLDEN") != nullptr)
    std::ofstream(path, std::ios::binary) << written;
  EXPECT_EQ(written, ReadFile(path)) << "rewrite with TILEWRIGHT_REWRITE_GOLDEN=1";
}

INSTANTIATE_TEST_SUITE_P(
    Candidates, GoldenPtx,
    ::testing::Values(GoldenCase{"nvptx_contraction_naive", "C[m,n] = sum(k: A[m,k] * B[k,n])",
                                 "m=4 n=1..8 k=16", "bf16", "contraction.naive{block=64}"},
                      GoldenCase{"nvptx_contraction_simt", "C[m,n] = sum(k: A[m,k] * B[k,n])",
                                 "m=256 n=256 k=256", "f32",
                                 "contraction.simt{tile_m=32 tile_n=32 thread_m=2 thread_n=2 "
                                 "tile_k=8 stages=2 epilogue=shared group_m=1 blocks_per_core=1}"},
                      GoldenCase{"nvptx_contraction_direct", "C[m,n] = sum(k: A[m,k] * B[n,k])",
                                 "m=1..8 n=30 k=600", "bf16",
                                 "contraction.direct{block=64 threads_k=64 threads_n=1 rows=2 "
                                 "columns=2 vector_k=4 unroll=2}"},
                      GoldenCase{"nvptx_contraction_mma", "C[m,n] = sum(k: A[m,k] * B[n,k])",
                                 "m=1..256 n=256 k=256", "bf16",
                                 "contraction.mma{tile_m=32 tile_n=32 warps_m=2 warps_n=1 "
                                 "tile_k=32 stages=3 epilogue=registers group_m=1 "
                                 "blocks_per_core=1}"},
                      GoldenCase{"nvptx_contraction_wgmma", "C[m,n] = sum(k: A[m,k] * B[n,k])",
                                 "m=1..512 n=512 k=256", "bf16",
                                 "contraction.wgmma{swap=0 mode=cooperative consumers=2 "
                                 "tile_m=128 tile_n=16 producer_registers=24 store=tma "
                                 "store_columns=32 store_buffers=1 tile_k=64 stages=3 in_flight=1 "
                                 "cluster=2m group=4 raster=rows stream_k=remainder}"},
                      GoldenCase{"nvptx_contraction_skinny", "C[m,n] = sum(k: A[m,k] * B[n,k])",
                                 "m=1..8 n=512 k=256", "bf16",
                                 "contraction.skinny{rows=16 split=2 groups=1 tile_k=64 stages=2 "
                                 "occupancy=1 in_flight=0 k_order=turned}"},
                      GoldenCase{"nvptx_contraction_skinny_ahead",
                                 "C[b,m,n] = sum(k: A[b,m,k] * B[b,n,k])", "b=3 m=1..8 n=500 k=256",
                                 "bf16",
                                 "contraction.skinny{rows=16 split=1 groups=1 tile_k=64 stages=2 "
                                 "occupancy=1 in_flight=0 k_order=turned ahead=16 later=half}"},
                      GoldenCase{"nvptx_pointwise_naive", "Y[i] = gelu(X[i])", "i=1000", "f32",
                                 "pointwise.naive{block=128}"}),
    [](const auto& info) { return info.param.file; });

// Programs of every family, of every element type, with strides, ranges and compound subscripts.
struct Program {
  std::string expression;
  std::string sizes;
  std::string types;
};
const Program kPrograms[] = {
    {"C[m,n] = sum(k: A[m,k] * B[k,n])", "m=256 n=192 k=128", "f32"},
    {"C[m,n] = sum(k: A[m,k] * B[n,k])", "m=1..300 n=199 k=77", "bf16,C:f32"},
    {"C[m,n] = sum(k: A[k,m] * B[k,n])", "m=100 n=64 k=32", "f16"},
    {"C[b,m,n] = sum(k: A[b,m,k] * B[b,k,n])", "b=3 m=65 n=63 k=33", "f64"},
    {"C[m,n] = sum(k: A[m,k] * B[k,n])", "m=128 n=128 k=64", "i8,C:i32"},
    {"C[m,n] = sum(k: A[m,k] * B[n,k])", "m=128 n=128 k=64", "e4m3,C:f32"},
    {"C[m,n] = sum(k: tf32(A[m,k]) * tf32(B[n,k]))", "m=128 n=128 k=64", "f32"},
    {"Y[t,o] = gelu(sum(i: X[t,i] * W[o,i]) + bias[o]) + R[t,o]", "t=1..512 i=256 o=512",
     "bf16,bias:f32"},
    {"Y[n,p,q,o] = sum(r,s,c: X[n, 2*p+r-1, 2*q+s-1, c] * W[o,r,s,c])",
     "n=2 p=14 q=14 o=32 r=3 s=3 c=16 X.1=28 X.2=28", "f16"},
    {"y[m] = sum(k: A[m,k] * x[k])", "m=1000 k=300", "f32"},
    // Odd rows, few outputs and short sums.
    {"C[m,n] = sum(k: A[m,k] * B[n,k])", "m=1 n=55 k=595", "bf16"},
    {"C[m,n] = sum(k: A[m,k] * B[n,k])", "m=8 n=2228 k=6676", "bf16"},
    {"C[m,n] = sum(k: A[m,k] * B[n,k])", "m=13738 n=93 k=9", "bf16"},
    // Large enough for the largest tiles.
    {"C[m,n] = sum(k: A[m,k] * B[k,n])", "m=4096 n=4096 k=4096", "f32"},
    {"C[m,n] = sum(k: A[m,k] * B[n,k])", "m=4096 n=4095 k=4097", "f32"},
    {"C[m,n] = sum(k: A[m,k] * B[k,n])", "m=2048 n=2048 k=2048", "f64"},
    {"C[m,n] = sum(k: A[m,k] * B[k,n])", "m=4096 n=4096 k=4097", "bf16"},
    {"Y[n,p,q,o] = sum(r,s,c: X[n, p+r-1, q+s-1, c] * W[o,r,s,c])",
     "n=32 p=56 q=56 o=256 r=3 s=3 c=64 X.1=56 X.2=56", "f16"},
    {"Y[i,j] = silu(X[i,j]) * Z[j,i]", "i=20 j=1..33", "f16"},
    {"Y[i] = where(i % 2 == 0 && X[i] > 0 || !(i < 10), erf(X[i]), -inf)", "i=40", "f32"},
    {"Y[j,i] = cast(i8, X[i,j] * 16)", "i=70 j=70", "f32,Y:i8"},
    {"Y[i] = tanh(X[i]) + log(abs(X[i])) * sqrt(abs(X[i])) + rsqrt(abs(X[i]) + 1) + sigmoid(X[i])",
     "i=100", "f64"},
    {"h[r] = max(c: X[r,c]); z[r] = sum(c: exp(X[r,c] - h[r])); Y[r,c] = exp(X[r,c] - h[r]) / z[r]",
     "r=1..64 c=100", "f32"},
    {"q[r] = sum(c: X[r,c] * X[r,c]); Y[r,c] = X[r,c] * rsqrt(q[r] / size(c) + 1e-6) * gain[c]",
     "r=10 c=1..4096", "e5m2,Y:bf16"},
    {"s[] = sum(i: X[i])", "i=1..100000", "i8,s:i32"},
};

// The default and `samples` others of every variant: all are assembled.
TEST(Nvptx, SampledSchedulesOfEveryVariantAreAssembled) {
  if (!HasPtxas()) GTEST_SKIP() << "no ptxas here";
  constexpr int kSamples = 2;
  std::mt19937_64 random(7);
  for (const Program& program : kPrograms) {
    SCOPED_TRACE(program.expression + " | " + program.sizes + " | " + program.types);
    const Workload workload = MakeWorkload(program.expression, program.sizes, program.types);
    auto space = ScheduleSpace::Make(workload, H100(), AllVariants());
    ASSERT_TRUE(space.ok()) << space.status();
    for (const Variant* variant : (*space)->variants()) {
      std::vector<Schedule> schedules = {variant->default_schedule(workload, H100())};
      const VariantSpace& own = (*space)->variant_space(variant->name);
      for (int i = 0; i < kSamples; ++i)
        schedules.push_back(own.At(UniformIndex(random, own.Count())));
      for (const Schedule& schedule : schedules) {
        const auto kernel = WriteKernel({workload, H100(), schedule}, DefaultCatalogue());
        if (absl::IsResourceExhausted(kernel.status()) && &schedule != &schedules[0]) continue;
        EXPECT_TRUE(kernel.ok()) << schedule.ToString() << ": " << kernel.status();
      }
    }
  }
}

// However slow, a reference must exist; where indices are simple, all of it is in registers.
TEST(Nvptx, ReferenceKernelsAreAssembled) {
  if (!HasPtxas()) GTEST_SKIP() << "no ptxas here";
  for (const Program& program : kPrograms) {
    SCOPED_TRACE(program.expression + " | " + program.sizes + " | " + program.types);
    const Workload workload = MakeWorkload(program.expression, program.sizes, program.types);
    const auto kernel = WriteReferenceKernel(workload, H100(), 0x1p-24, 1);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    if (program.expression.find("r-1") != std::string::npos) continue;
    EXPECT_THAT(kernel->resources, ::testing::Contains(::testing::Pair("spill_bytes", 0)));
  }
}

}  // namespace
}  // namespace tilewright
