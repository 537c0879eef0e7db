// GPU kernels against the interpreter, run by the device emulator: naive, reference and the
// variants without inline PTX, on seeded random programs and schedules and on what those do not
// reach.
#include <unistd.h>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "codegen/writer.h"
#include "tests/agreement/check.h"
#include "tests/agreement/random_program.h"
#include "tests/codegen/device_emulator.h"

namespace tilewright {
namespace {

// Nothing here needs a cubin. Before anything looks for ptxas.
const bool kWithoutPtxas = setenv("TILEWRIGHT_PTXAS", "", 1) == 0;

// Few cores, so that blocks take several tiles.
Target SmallGpu() {
  Target target = *FindTarget("cuda:h100-sxm");
  target.cores = 2;
  target.threads_per_core = 1024;
  return target;
}

std::string ReadIr(const std::filesystem::path& directory, const char* name) {
  std::ifstream file(directory / name, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Where kernels are dumped: each process has a directory of its own, for tests run side by side.
std::filesystem::path DumpDirectory() {
  struct Directory {
    std::filesystem::path path = std::filesystem::path(::testing::TempDir()) /
                                 ("tilewright-nvptx-agreement-" + std::to_string(getpid()));
    ~Directory() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
  };
  static const Directory directory;
  return directory.path;
}

// Those that the emulator cannot run.
bool HasInlinePtx(const std::string& variant) {
  return variant == "contraction.wgmma" || variant == "contraction.skinny";
}

void ExpectScheduleAgrees(const Workload& workload, const Target& target, const Schedule& schedule,
                          const std::vector<Expected>& expected) {
  SCOPED_TRACE(schedule.ToString());
  auto kernel =
      WriteKernel({workload, target, schedule}, DefaultCatalogue(), {DumpDirectory().string()});
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  auto loaded = EmulateDevice(*kernel, ReadIr(DumpDirectory(), "03-ir-before-passes.ll"));
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  for (const Expected& at : expected) {
    for (auto order : {LoadedKernel::Order::kForwards, LoadedKernel::Order::kBackwards})
      EXPECT_EQ(Disagreement(workload, **loaded, at, order), "");
  }
}

// The GPU's reference kernel has the interpreter's values and the CPU's bounds.
void ExpectReferenceAgrees(const Workload& workload, const Target& target,
                           const std::vector<Expected>& expected) {
  SCOPED_TRACE("reference");
  auto kernel = WriteReferenceKernel(workload, target, AccumulatorRoundoff(workload), 1,
                                     {DumpDirectory().string()});
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  auto loaded = EmulateDevice(*kernel, ReadIr(DumpDirectory(), "01-ir-before-passes.ll"));
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  for (const Expected& at : expected) {
    std::vector<std::vector<char>> inputs = at.inputs;
    std::vector<void*> buffers;
    for (auto& input : inputs) buffers.push_back(input.data());
    std::vector<std::vector<double>> outputs;
    for (const auto& values : at.values) {
      outputs.emplace_back(values.size(), -1);
      outputs.emplace_back(values.size(), -1);
    }
    for (auto& output : outputs) buffers.push_back(output.data());
    (*loaded)->Run(buffers, at.sizes, LoadedKernel::Order::kBackwards);
    for (size_t i = 0; i < at.values.size(); ++i) {
      for (size_t p = 0; p < at.values[i].size(); ++p) {
        const double exact = at.values[i][p], value = outputs[2 * i][p];
        const double bound = at.bounds[i][p], own = outputs[2 * i + 1][p];
        const bool same = value == exact || (std::isnan(value) && std::isnan(exact));
        ASSERT_TRUE(same || std::abs(value - exact) <= bound + 1e-12 * std::abs(exact))
            << "output " << i << " position " << p << ": " << value << ", interpreter " << exact;
        ASSERT_TRUE(own == bound || std::abs(own - bound) <= 1e-6 * bound)
            << "output " << i << " position " << p << ": bound " << own << ", CPU " << bound;
      }
    }
  }
}

void ExpectAgreement(const RandomProgram& program, uint64_t seed, int samples) {
  SCOPED_TRACE(program.expression + " | " + program.options.sizes + " | " + program.options.types);
  auto workload = Workload::Make(program.expression, program.options);
  ASSERT_TRUE(workload.ok()) << workload.status();
  const Target target = SmallGpu();
  auto space = ScheduleSpace::Make(*workload, target, AllVariants());
  ASSERT_TRUE(space.ok()) << space.status();
  std::vector<Sizes> points = {workload->HighestSizes()};
  if (workload->has_range()) points.push_back(workload->LowestSizes());
  std::vector<Expected> expected;
  for (const Sizes& sizes : points)
    expected.push_back(MakeExpected(*workload, KnownTargets()[0], sizes, seed));
  ExpectReferenceAgrees(*workload, target, expected);
  std::mt19937_64 random(seed);
  for (const Variant* variant : (*space)->variants()) {
    if (HasInlinePtx(variant->name)) continue;
    const VariantSpace& own = (*space)->variant_space(variant->name);
    ExpectScheduleAgrees(*workload, target, variant->default_schedule(*workload, target), expected);
    for (int i = 0; i < samples; ++i) {
      ExpectScheduleAgrees(*workload, target, own.At(UniformIndex(random, own.Count())), expected);
    }
  }
}

TEST(NvptxAgreement, PointwiseVariantsMatchTheInterpreter) {
  for (uint64_t seed = 0; seed < 10; ++seed) ExpectAgreement(RandomPointwise(seed), seed, 1);
}

TEST(NvptxAgreement, RowReductionVariantsMatchTheInterpreter) {
  for (uint64_t seed = 0; seed < 10; ++seed) ExpectAgreement(RandomRowReduction(seed), seed, 1);
}

TEST(NvptxAgreement, ContractionVariantsMatchTheInterpreter) {
  for (uint64_t seed = 0; seed < 12; ++seed) ExpectAgreement(RandomContraction(seed), seed, 2);
}

// Layouts, types, epilogues and edges by hand: every way an operand is copied, more than one tile
// along each axis, and steps that do not fill.
TEST(NvptxAgreement, HoldsForEveryLayoutTypeAndEpilogue) {
  const RandomProgram programs[] = {
      {"C[m,n] = sum(k: A[m,k] * B[k,n])", {"m=70 n=72 k=52", "f32"}},
      {"C[m,n] = sum(k: A[k,m] * B[n,k])", {"m=68 n=35 k=40", "f32"}},
      {"C[m,n] = sum(k: A[m,k] * B[n,k])", {"m=33 n=40 k=24", "bf16,C:f32"}},
      {"C[m,n] = sum(k: A[k,m] * B[k,n])", {"m=40 n=48 k=17", "f16"}},
      {"C[m,n] = sum(k: A[m,k] * B[k,n])", {"m=20 n=36 k=32", "f64"}},
      {"C[m,n] = sum(k: A[m,k] * B[n,k])", {"m=18 n=34 k=48", "i8,C:i32"}},
      {"C[m,n] = sum(k: A[m,k] * B[n,k])", {"m=16 n=33 k=32", "e4m3,C:f32"}},
      {"C[m,n] = sum(k: A[m,k] * B[k,n])", {"m=1..40 n=1..33 k=1..20", "f32"}},
      {"C[m,n] = sum(k: A[m,k] * B[k,n])",
       {"m=20 n=24 k=16 A.0.stride=20 B.0.stride=28 C.0.stride=32", "f32"}},
      {"C[m,n] = sum(k: tf32(A[m,k]) * tf32(B[k,n]))", {"m=20 n=24 k=16", "f32"}},
      {"C[m,n] = sum(k: tf32(A[k,m]) * tf32(B[n,k]))", {"m=36 n=33 k=20", "f32"}},
      {"C[m,n] = sum(k: A[k,m] * B[k,n])", {"m=36 n=40 k=70", "i8,C:i32"}},
      {"C[b,m,n] = sum(k: A[b,m,k] * B[b,k,n])", {"b=3 m=17 n=18 k=16", "bf16"}},
      {"Y[t,o] = gelu(sum(i: X[t,i] * W[o,i]) + bias[o]) + R[t,o]",
       {"t=1..35 i=32 o=40", "bf16,bias:f32"}},
      {"Y[n,p,q,o] = sum(r,s,c: X[n, 2*p+r-1, 2*q+s-1, c] * W[o,r,s,c])",
       {"n=2 p=4 q=4 o=8 r=3 s=3 c=4 X.1=8 X.2=8", "f16"}},
      {"y[m] = sum(k: A[m,k] * x[k])", {"m=70 k=300", "f32"}},
      {"y[m] = sum(k: A[m,k] * x[k])", {"m=3 k=1500", "bf16,y:f32"}},
      // Sums that several warps share, pieces of 4 and 8 bytes, and outputs that leave threads
      // idle.
      {"C[m,n] = sum(k: A[m,k] * B[n,k])", {"m=2 n=5 k=595", "bf16"}},
      {"C[m,n] = sum(k: A[m,k] * B[n,k])", {"m=3 n=9 k=1300", "bf16,C:f32"}},
      {"C[m,n] = sum(k: A[k,m] * B[k,n])", {"m=8 n=12 k=700", "f16"}},
      {"C[m,n] = sum(k: A[m,k] * B[n,k])", {"m=3 n=2 k=402", "f64"}},
      {"C[m,n] = sum(k: A[m,k] * B[n,k])", {"m=100 n=45 k=2", "bf16"}},
      {"C[m,n] = sum(k: A[m,k] * B[k,n])", {"m=2 n=3 k=1..900", "i8,C:i32"}},
      {"Y[m,n] = sum(k: A[m,k] * B[k,n] * 0.5)", {"m=7 n=19 k=12", "i8,Y:f32"}},
      {"O[b,h,i,d] = sum(j: P[b,h,i,j] * V[b,h/2,j,d])", {"b=2 h=4 i=9 d=16 j=20 V.1=2", "f16"}},
  };
  uint64_t seed = 50;
  for (const RandomProgram& program : programs) ExpectAgreement(program, ++seed, 3);
}

// The emulator sees what a kernel does wrong: without one of its barriers, or with copies that are
// not waited for, results differ.
TEST(NvptxAgreement, ShowsAMissingBarrierAndAMissingWait) {
  auto workload = Workload::Make("C[m,n] = sum(k: A[m,k] * B[k,n])", {"m=64 n=64 k=64", "f32"});
  ASSERT_TRUE(workload.ok()) << workload.status();
  const Expected expected =
      MakeExpected(*workload, KnownTargets()[0], workload->HighestSizes(), /*seed=*/3);
  auto kernel = WriteKernel(
      {*workload, SmallGpu(),
       *ParseSchedule("contraction.simt{tile_m=32 tile_n=32 thread_m=2 thread_n=2 tile_k=8 "
                      "stages=2 epilogue=shared group_m=1 blocks_per_core=1}")},
      DefaultCatalogue(), {DumpDirectory().string()});
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const std::string ir = ReadIr(DumpDirectory(), "03-ir-before-passes.ll");
  auto differs = [&](const std::string& text) {
    auto loaded = EmulateDevice(*kernel, text);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    bool any = false;
    for (auto order : {LoadedKernel::Order::kForwards, LoadedKernel::Order::kBackwards})
      any |= !Disagreement(*workload, **loaded, expected, order).empty();
    return any;
  };
  EXPECT_FALSE(differs(ir));
  const std::string barrier = "call void @llvm.nvvm.barrier0()";
  int barriers = 0;
  for (size_t at = ir.find(barrier); at != std::string::npos; at = ir.find(barrier, at + 1)) {
    std::string without = ir;
    EXPECT_TRUE(differs(without.erase(at, barrier.size()))) << "barrier " << barriers;
    ++barriers;
  }
  // Before each step, before the sums are staged, before they are read, before the next tile.
  EXPECT_EQ(barriers, 4);
  const std::string wait = "call void @llvm.nvvm.cp.async.wait.group(i32 0)";
  std::string without = ir;
  ASSERT_NE(ir.find(wait), std::string::npos);
  EXPECT_TRUE(differs(without.erase(ir.find(wait), wait.size())));
}

TEST(NvptxAgreement, HoldsForReductionsOfEveryShape) {
  const RandomProgram programs[] = {
      {"s[] = sum(i: X[i])", {"i=1..3000", "bf16,s:f32"}},
      {"s[] = max(i,j: X[i,j])", {"i=13 j=321", "f16"}},
      {"Y[c] = sum(r: X[r,c])", {"r=300 c=1..70", "bf16,Y:f32"}},
      {"h[r] = max(c: X[r,c]); z[r] = sum(c: exp(X[r,c] - h[r])); Y[r,c] = exp(X[r,c] - h[r]) / "
       "z[r]",
       {"r=9 c=270", "f32"}},
      {"out z[r] = sum(c: X[r,c]); out Y[r,c] = X[r,c] / (abs(z[r]) + 1)",
       {"r=5 c=37", "f32,z:bf16,Y:f16"}},
      {"Y[j,i] = cast(i8, X[i,j] * 16)", {"i=70 j=70", "f32,Y:i8"}},
      {"Y[i] = where(i % 2 == 0 && X[i] > 0 || !(i < 10), X[i], -inf)", {"i=40", "f32"}},
  };
  uint64_t seed = 90;
  for (const RandomProgram& program : programs) ExpectAgreement(program, ++seed, 1);
}

}  // namespace
}  // namespace tilewright
