// Packs for CUDA, without a GPU: what the launcher asks of the driver is recorded by a library that
// takes the driver's place, and held to the recipe.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "codegen/pack.h"
#include "codegen/pack_text.h"
#include "codegen/ptxas.h"
#ifdef TILEWRIGHT_FAKE_CUDA
#include "tests/codegen/fake_cuda_driver.h"
#endif

namespace tilewright {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string Contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

std::string Golden() { return Contents(TILEWRIGHT_GOLDEN "/manifest_v2.json"); }

// The pack of the golden manifest, whose kernel uses everything that a recipe can say. Its object
// is no code.
absl::StatusOr<Pack> GoldenPack(const std::string& manifest = Golden()) {
  return ParseManifest(manifest, [](const std::string&) { return "object"; });
}

absl::Status CheckCuda(const Workload& workload, const Kernel& kernel) {
  const Target target = *FindTarget("cuda:h200");
  return (*FindPackKind(target))->check(target, workload, kernel);
}

PackItem ContractionItem(const std::string& name, const std::string& sizes,
                         const std::string& types, const std::string& schedule) {
  Names names;
  const std::string expression = "C[m,n] = sum(k: A[m,k] * B[n,k])";
  auto workload = Workload::Make(expression, {.sizes = sizes, .types = types}, &names);
  EXPECT_TRUE(workload.ok()) << workload.status();
  auto space = ScheduleSpace::Make(*workload, *FindTarget("cuda:h200"), AllVariants());
  EXPECT_TRUE(space.ok()) << space.status();
  PackItem item{.name = name, .workload = *workload, .names = names, .source = expression};
  for (const Variant* variant : (*space)->variants()) {
    if (variant->name == schedule)
      item.schedule = variant->default_schedule(*workload, *FindTarget("cuda:h200"));
  }
  EXPECT_EQ(item.schedule.variant, schedule);
  return item;
}

TEST(PackCudaTest, ReadsTheManifestOfVersion2) {
  const std::string golden = Golden();
  ASSERT_FALSE(golden.empty());
  const absl::StatusOr<Pack> pack = GoldenPack();
  ASSERT_TRUE(pack.ok()) << pack.status();
  ASSERT_EQ(pack->entries.size(), 1);
  EXPECT_TRUE(pack->entries[0].item.dependent_launch);
  EXPECT_EQ(pack->entries[0].kernel.launches.size(), 2);
  EXPECT_EQ(ManifestJson(*pack), golden);
}

TEST(PackCudaTest, RefusesManifestsThatLackWhatVersion2Has) {
  std::string older = Golden();
  older.replace(older.find("\"version\": 2"), 12, "\"version\": 1");
  EXPECT_THAT(std::string(GoldenPack(older).status().message()),
              HasSubstr("version must be 2 or more for cuda:h200"));
  std::string renamed = Golden();
  renamed.replace(renamed.find("\"dependent_launch\": true\n"), 18, "\"independent\"");
  EXPECT_THAT(std::string(GoldenPack(renamed).status().message()),
              HasSubstr("workloads/0/dispatch/0/dependent_launch must be true or false"));
}

TEST(PackCudaTest, RefusesRecipesThatTheLauncherCannotFollow) {
  const absl::StatusOr<Pack> pack = GoldenPack();
  ASSERT_TRUE(pack.ok()) << pack.status();
  const Workload& workload = pack->entries[0].item.workload;
  const Kernel good = pack->entries[0].kernel;
  EXPECT_TRUE(CheckCuda(workload, good).ok());
  const auto refused = [&](auto change) {
    Kernel kernel = good;
    change(&kernel);
    return std::string(CheckCuda(workload, kernel).message());
  };
  EXPECT_THAT(refused([](Kernel* k) { k->workspace.alignment = 512; }), HasSubstr("up to 256"));
  EXPECT_THAT(refused([](Kernel* k) { k->objects[0].format = "cubin-sm_80"; }),
              HasSubstr("cubin-sm_90a"));
  EXPECT_THAT(refused([](Kernel* k) { k->objects[0].format = "library-cublaslt"; }),
              HasSubstr("library-cublaslt"));
  EXPECT_THAT(refused([](Kernel* k) { k->tensor_maps[0].buffer = 3; }), HasSubstr("buffer 3 of 3"));
  EXPECT_THAT(refused([](Kernel* k) { k->launches[1].arguments[0].number = 2; }),
              HasSubstr("tensor map 2 of 2"));
  EXPECT_THAT(refused([](Kernel* k) { k->tensor_maps[0].dims[1].extent.terms[0].sizes = {3}; }),
              HasSubstr("size 3 of 3"));
  EXPECT_THAT(refused([](Kernel* k) { k->launches[0].block = 0; }), HasSubstr("on a CPU"));
}

TEST(PackCudaTest, TakesPtxOnlyOfKernelsWithoutInstructionsOfOneArchitecture) {
  const absl::StatusOr<Pack> pack = GoldenPack();
  ASSERT_TRUE(pack.ok()) << pack.status();
  const Workload& workload = pack->entries[0].item.workload;
  Kernel kernel = pack->entries[0].kernel;
  kernel.objects[0] = {"ptx-sm_90a", ".version 8.5\n mma.sync.aligned.m16n8k16"};
  EXPECT_TRUE(CheckCuda(workload, kernel).ok());
  EXPECT_EQ(ObjectPath(kernel.objects[0]).substr(8 + 64), ".ptx");
  kernel.objects[0].bytes += "\n wgmma.fence.sync.aligned;";
  const absl::Status status = CheckCuda(workload, kernel);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("no ptxas was found"));
}

class PackCudaFiles : public ::testing::Test {
 protected:
  PackCudaFiles() {
    std::string pattern = absl::StrCat(::testing::TempDir(), "/pack_cuda_test_XXXXXX");
    directory_ = mkdtemp(pattern.data());
  }
  ~PackCudaFiles() override { fs::remove_all(directory_); }
  std::string At(const std::string& name) const { return (directory_ / name).string(); }

  fs::path directory_;
};

TEST_F(PackCudaFiles, HoldsKernelsOfEveryVariantAsFilesAndAsArrays) {
  const absl::StatusOr<Ptxas> ptxas = FindPtxas();
  std::vector<PackItem> items = {
      ContractionItem("plain", "m=64 n=64 k=64", "f32", "contraction.simt"),
      ContractionItem("tensor", "m=64 n=64 k=64", "bf16", "contraction.mma")};
  if (ptxas.ok() && !ptxas->path.empty()) {
    items.push_back(ContractionItem("hopper", "m=256 n=256 k=256", "bf16", "contraction.wgmma"));
    items.push_back(ContractionItem("decode", "m=16 n=1024 k=1024", "bf16", "contraction.skinny"));
  }
  const absl::StatusOr<Pack> pack = BuildPack(
      items, {.name = "ops", .target = *FindTarget("cuda:h200"), .catalogue = DefaultCatalogue()});
  ASSERT_TRUE(pack.ok()) << pack.status();
  ASSERT_TRUE(WritePack(*pack, At("ops")).ok());
  const std::string arrays = Contents(At("ops/kernels.inc"));
  for (const PackEntry& entry : pack->entries) {
    const CodeObject& object = entry.kernel.objects[0];
    EXPECT_EQ(Contents(At("ops/" + ObjectPath(object))), object.bytes);
    EXPECT_THAT(arrays, HasSubstr(ObjectPath(object)));
  }
  const absl::StatusOr<Pack> read = ReadPack(At("ops"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(ManifestJson(*read), ManifestJson(*pack));
  // Nothing can be written any more, and nothing need be.
  const absl::StatusOr<Pack> reused = BuildPack(
      items,
      {.name = "ops", .target = *FindTarget("cuda:h200"), .catalogue = {}, .reuse = At("ops")});
  ASSERT_TRUE(reused.ok()) << reused.status();
  ASSERT_TRUE(WritePack(*reused, At("again")).ok());
  for (const char* file :
       {"manifest.json", "launcher.c", "kernels.inc", "ops.h", "opsConfig.cmake"})
    EXPECT_EQ(Contents(At(absl::StrCat("again/", file))), Contents(At(absl::StrCat("ops/", file))));
  if (items.size() == 2) GTEST_SKIP() << "no ptxas: kernels with instructions of sm_90a alone";
}

TEST_F(PackCudaFiles, AFunctionMayNotHaveTheNameOfThePacksOwn) {
  const absl::StatusOr<Pack> pack = BuildPack(
      {{ContractionItem("ops_load", "m=64 n=64 k=64", "f32", "contraction.simt")}},
      {.name = "ops", .target = *FindTarget("cuda:h200"), .catalogue = DefaultCatalogue()});
  EXPECT_THAT(std::string(pack.status().message()),
              HasSubstr("already has a function of that name"));
}

#ifndef TILEWRIGHT_FAKE_CUDA

TEST(PackCudaLauncherTest, AsksTheDriverForWhatTheRecipeSays) {
  GTEST_SKIP() << "cuda.h was not found: the launcher cannot be compiled";
}

#else

// The part of a pack's header that callers see (codegen/pack_cuda_launcher.cc).
struct CudaContext {
  CUstream stream = nullptr;
  void* workspace = nullptr;
  size_t workspace_bytes = 0;
};
enum {
  kOk = 0,
  kNullPointer = 1,
  kMisaligned = 2,
  kSizeOutOfRange = 3,
  kUnsuitedDevice = 4,
  kBadWorkspace = 5,
  kOutOfMemory = 6,
  kNoDriver = 7,
  kNoContext = 8,
  kDriverError = 1000
};

using Product = int (*)(const void* a, const void* b, void* c, int64_t m,
                        const CudaContext* context);

constexpr uint64_t kA = 0x10000;
constexpr uint64_t kB = 0x20000;
constexpr uint64_t kC = 0x30000;
constexpr uint64_t kWorkspace = 0x40000;

void* Pointer(uint64_t address) { return reinterpret_cast<void*>(address); }

// The golden pack, compiled as a user's build would and loaded beside a driver that only records.
class PackCudaLauncherTest : public PackCudaFiles {
 protected:
  void SetUp() override {
    void* driver = dlopen(TILEWRIGHT_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(driver, nullptr) << dlerror();
    fake_ = reinterpret_cast<FakeCudaFunction>(dlsym(driver, "fake_cuda"))();
    Reset();
    absl::StatusOr<Pack> pack = GoldenPack();
    ASSERT_TRUE(pack.ok()) << pack.status();
    pack_ = *std::move(pack);
    for (const Launch& launch : kernel().launches)
      fake_->parameter_counts[launch.entry] = static_cast<int>(launch.arguments.size());
    Load();
  }

  // The driver's state as it is at first.
  void Reset() {
    fake_->major = 9;
    fake_->minor = 0;
    fake_->multiprocessors = 132;
    fake_->device = 0;
    fake_->launch_result = fake_->allocation_result = CUDA_SUCCESS;
    fake_->calls.clear();
    fake_->loaded.clear();
    fake_->maps.clear();
    fake_->launches.clear();
  }

  void Load() {
    ASSERT_TRUE(WritePack(pack_, At("pack")).ok());
    const std::string library = At(absl::StrCat("golden", ++loaded_, ".so"));
    const std::string command = absl::StrCat(
        "cc -std=c11 -pedantic -O1 -Wall -Wextra -Werror -shared -fPIC -o ", library, " ",
        At("pack/launcher.c"), " -isystem " TILEWRIGHT_CUDA_INCLUDE " -ldl -pthread");
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
    void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(handle, nullptr) << dlerror();
    product_ = reinterpret_cast<Product>(dlsym(handle, "product"));
    ASSERT_NE(product_, nullptr);
    workspace_bytes_ = reinterpret_cast<size_t (*)()>(dlsym(handle, "product_workspace_bytes"));
    ASSERT_NE(workspace_bytes_, nullptr);
    load_ = reinterpret_cast<int (*)()>(dlsym(handle, "golden_load"));
    ASSERT_NE(load_, nullptr);
  }

  const Kernel& kernel() const { return pack_.entries[0].kernel; }
  int Call(const CudaContext* context, int64_t m = 100) {
    return product_(Pointer(kA), Pointer(kB), Pointer(kC), m, context);
  }
  CudaContext Given() const {
    return {reinterpret_cast<CUstream>(0x99), Pointer(kWorkspace),
            static_cast<size_t>(kernel().workspace.bytes)};
  }

  FakeCuda* fake_ = nullptr;
  Pack pack_;
  Product product_ = nullptr;
  size_t (*workspace_bytes_)() = nullptr;
  int (*load_)() = nullptr;
  int loaded_ = 0;
};

TEST_F(PackCudaLauncherTest, LaunchesAreThoseOfTheRecipe) {
  const CudaContext context = Given();
  ASSERT_EQ(Call(&context), kOk);
  ASSERT_EQ(fake_->launches.size(), 2);
  for (size_t i = 0; i < 2; ++i) {
    const Launch& wanted = kernel().launches[i];
    const FakeCudaLaunch& got = fake_->launches[i];
    EXPECT_EQ(got.entry, wanted.entry);
    EXPECT_THAT(got.grid, ElementsAre(wanted.grid[0], wanted.grid[1], wanted.grid[2]));
    EXPECT_THAT(got.block, ElementsAre(wanted.block, 1, 1));
    EXPECT_EQ(got.shared_memory_bytes, wanted.shared_memory_bytes);
    EXPECT_EQ(got.cluster, wanted.cluster == 1 ? 0 : wanted.cluster);
    EXPECT_EQ(got.stream, context.stream);
    ASSERT_EQ(got.parameters.size(), wanted.arguments.size());
  }
  // buffer 0, workspace + 256, size of index 0, -7
  const std::vector<uint64_t> copy = {kA, kWorkspace + 256, 100, static_cast<uint64_t>(-7)};
  EXPECT_EQ(fake_->launches[0].parameters, copy);
  // maps 0 and 1, buffer 2
  EXPECT_THAT(fake_->launches[1].parameters, ElementsAre(1, 2, kC));
  for (size_t i = 0; i < 2; ++i)
    EXPECT_EQ(reinterpret_cast<uintptr_t>(fake_->launches[1].parameter_addresses[i]) % 64, 0);
  EXPECT_EQ(fake_->calls.back(), "cuLaunchKernelEx");
}

TEST_F(PackCudaLauncherTest, TensorMapsAreThoseOfTheRecipeAtTheSizesOfTheCall) {
  const CudaContext context = Given();
  ASSERT_EQ(Call(&context, 100), kOk);
  ASSERT_EQ(fake_->maps.size(), 2);
  const FakeTensorMap& a = fake_->maps[0];
  EXPECT_EQ(a.type, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
  EXPECT_EQ(a.address, kB + 32);
  EXPECT_THAT(a.extents, ElementsAre(64, 100));
  EXPECT_THAT(a.strides_bytes, ElementsAre(2 * 64));
  EXPECT_THAT(a.box, ElementsAre(64, 128));
  EXPECT_THAT(a.element_strides, ElementsAre(1, 1));
  EXPECT_EQ(a.swizzle, CU_TENSOR_MAP_SWIZZLE_128B);
  EXPECT_EQ(a.l2_promotion, CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
  const FakeTensorMap& copy = fake_->maps[1];
  EXPECT_EQ(copy.type, CU_TENSOR_MAP_DATA_TYPE_FLOAT32);
  EXPECT_EQ(copy.address, kWorkspace + 512);
  EXPECT_THAT(copy.extents, ElementsAre(8, 2 * 100 + 3, 5));
  EXPECT_THAT(copy.strides_bytes, ElementsAre(4 * 8, 4 * 100 * 256));
  EXPECT_EQ(copy.swizzle, CU_TENSOR_MAP_SWIZZLE_NONE);
  EXPECT_EQ(copy.l2_promotion, CU_TENSOR_MAP_L2_PROMOTION_NONE);
  for (const FakeTensorMap& map : fake_->maps) {
    EXPECT_EQ(map.interleave, CU_TENSOR_MAP_INTERLEAVE_NONE);
    EXPECT_EQ(map.fill, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  }
}

TEST_F(PackCudaLauncherTest, DependentLaunchesAreThoseOfTheRegimeThatFollowKernels) {
  CudaContext context = Given();
  // The workspace is cleared first, which is no kernel.
  ASSERT_EQ(Call(&context), kOk);
  EXPECT_FALSE(fake_->launches[0].dependent);
  EXPECT_TRUE(fake_->launches[1].dependent);
  Reset();
  pack_.entries[0].kernel.workspace.zeroed = false;
  Load();
  ASSERT_EQ(Call(&context), kOk);
  EXPECT_TRUE(fake_->launches[0].dependent);
  EXPECT_TRUE(fake_->launches[1].dependent);
  Reset();
  pack_.entries[0].item.dependent_launch = false;
  Load();
  ASSERT_EQ(Call(&context), kOk);
  EXPECT_FALSE(fake_->launches[0].dependent);
  EXPECT_FALSE(fake_->launches[1].dependent);
}

TEST_F(PackCudaLauncherTest, TheCallersWorkspaceIsClearedWhereTheKernelWantsIt) {
  EXPECT_EQ(workspace_bytes_(), kernel().workspace.bytes);
  const CudaContext context = Given();
  ASSERT_EQ(load_(), kOk);
  fake_->calls.clear();
  ASSERT_EQ(Call(&context), kOk);
  EXPECT_THAT(fake_->calls,
              ElementsAre(absl::StrCat("cuMemsetD8Async ", kWorkspace, " 0 ", workspace_bytes_()),
                          "cuLaunchKernelEx", "cuLaunchKernelEx"));
}

TEST_F(PackCudaLauncherTest, OfAWorkspaceWithFlagsTheseAreCleared) {
  pack_.entries[0].kernel.workspace.zeroed = false;
  pack_.entries[0].kernel.workspace.flag_bytes = 256;
  Load();
  const CudaContext context = Given();
  ASSERT_EQ(load_(), kOk);
  fake_->calls.clear();
  ASSERT_EQ(Call(&context), kOk);
  EXPECT_THAT(fake_->calls, ElementsAre(absl::StrCat("cuMemsetD8Async ", kWorkspace, " 0 256"),
                                        "cuLaunchKernelEx", "cuLaunchKernelEx"));
}

TEST_F(PackCudaLauncherTest, WithoutAWorkspaceTheStreamsPoolGivesOne) {
  ASSERT_EQ(load_(), kOk);
  fake_->calls.clear();
  ASSERT_EQ(Call(nullptr), kOk);
  const size_t bytes = workspace_bytes_();
  EXPECT_THAT(fake_->calls,
              ElementsAre(absl::StrCat("cuMemAllocAsync ", bytes),
                          absl::StrCat("cuMemsetD8Async ", fake_->allocated, " 0 ", bytes),
                          "cuLaunchKernelEx", "cuLaunchKernelEx", "cuMemFreeAsync"));
  EXPECT_EQ(fake_->launches[0].parameters[1], fake_->allocated + 256);
  EXPECT_EQ(fake_->launches[0].stream, nullptr);
  fake_->allocation_result = CUDA_ERROR_OUT_OF_MEMORY;
  fake_->launches.clear();
  EXPECT_EQ(Call(nullptr), kOutOfMemory);
  EXPECT_THAT(fake_->launches, IsEmpty());
}

TEST_F(PackCudaLauncherTest, RefusesWhatTheDomainExcludesAndStartsNothing) {
  CudaContext context = Given();
  EXPECT_EQ(Call(&context, 0), kSizeOutOfRange);
  EXPECT_EQ(Call(&context, 513), kSizeOutOfRange);
  EXPECT_EQ(product_(nullptr, Pointer(kB), Pointer(kC), 5, &context), kNullPointer);
  EXPECT_EQ(product_(Pointer(kA), Pointer(kB), nullptr, 5, &context), kNullPointer);
  EXPECT_EQ(product_(Pointer(kA + 8), Pointer(kB), Pointer(kC), 5, &context), kMisaligned);
  context.workspace_bytes -= 1;
  EXPECT_EQ(Call(&context), kBadWorkspace);
  context = Given();
  context.workspace = Pointer(kWorkspace + 16);
  EXPECT_EQ(Call(&context), kBadWorkspace);
  EXPECT_THAT(fake_->calls, IsEmpty());
}

TEST_F(PackCudaLauncherTest, RefusesDevicesThatThePackWasNotBuiltFor) {
  const CudaContext context = Given();
  fake_->device = -1;
  EXPECT_EQ(Call(&context), kNoContext);
  fake_->device = 0;
  fake_->major = 8;
  EXPECT_EQ(Call(&context), kUnsuitedDevice);
  fake_->major = 9;
  fake_->minor = 1;
  EXPECT_EQ(load_(), kUnsuitedDevice);
  fake_->minor = 0;
  fake_->multiprocessors = 114;
  EXPECT_EQ(Call(&context), kUnsuitedDevice);
  EXPECT_THAT(fake_->loaded, IsEmpty());
  EXPECT_THAT(fake_->launches, IsEmpty());
  fake_->multiprocessors = 132;
  EXPECT_EQ(Call(&context), kOk);
}

TEST_F(PackCudaLauncherTest, PtxForAnArchitectureRunsOnLaterOnes) {
  pack_.target = *FindTarget("cuda:a100");
  pack_.entries[0].kernel.objects[0].format = "ptx-sm_80";
  Load();
  EXPECT_EQ(load_(), kOk);
  fake_->device = 1;
  fake_->major = 7;
  EXPECT_EQ(load_(), kUnsuitedDevice);
  fake_->device = 0;
  fake_->major = 9;
  pack_.entries[0].kernel.objects[0].format = "cubin-sm_80";
  Load();
  EXPECT_EQ(load_(), kUnsuitedDevice);
  fake_->major = 8;
  EXPECT_EQ(load_(), kOk);
}

TEST_F(PackCudaLauncherTest, ADriversErrorIsTold) {
  const CudaContext context = Given();
  fake_->launch_result = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  EXPECT_EQ(Call(&context), kDriverError + CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  EXPECT_EQ(Call(nullptr), kDriverError + CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  EXPECT_EQ(fake_->calls.back(), "cuMemFreeAsync");
}

TEST_F(PackCudaLauncherTest, CodeIsLoadedOnceAndAllowedOnEachDevice) {
  const CudaContext context = Given();
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      for (int call = 0; call < 50; ++call) EXPECT_EQ(Call(&context), kOk);
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(fake_->launches.size(), 4 * 50 * 2);
  ASSERT_EQ(fake_->loaded.size(), 1);
  EXPECT_STREQ(static_cast<const char*>(fake_->loaded[0]), "object");  // and a zero
  const auto allowed = [&](int device) {
    std::vector<std::string> calls;
    for (const std::string& call : fake_->calls) {
      if (call.ends_with(absl::StrCat("device ", device))) calls.push_back(call);
    }
    return calls;
  };
  const Launch& large = kernel().launches[1];
  EXPECT_THAT(allowed(0), ElementsAre(absl::StrCat("cuKernelSetAttribute ", large.entry, " shared ",
                                                   large.shared_memory_bytes, " device 0"),
                                      absl::StrCat("cuKernelSetAttribute ", large.entry,
                                                   " cluster 1 device 0")));
  fake_->device = 300;  // more than the launcher remembers
  EXPECT_EQ(Call(&context), kOk);
  EXPECT_EQ(Call(&context), kOk);
  EXPECT_EQ(allowed(300).size(), 4);
  EXPECT_EQ(fake_->loaded.size(), 1);
}

TEST_F(PackCudaLauncherTest, LoadingDoesNotDisturbACapture) {
  ASSERT_EQ(load_(), kOk);
  ASSERT_GE(fake_->calls.size(), 3);
  EXPECT_EQ(fake_->calls.front(), absl::StrCat("capture mode ", CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_EQ(fake_->calls[1], "cuLibraryLoadData");
  EXPECT_EQ(fake_->calls.back(), absl::StrCat("capture mode ", CU_STREAM_CAPTURE_MODE_GLOBAL));
}

TEST_F(PackCudaLauncherTest, HeaderAndLauncherAreCAndCxx) {
  for (const char* compiler : {"cc -x c -std=c11 -pedantic", "c++ -x c++ -std=c++11"}) {
    for (const std::string& file :
         {At("pack/launcher.c"), absl::StrCat("-include ", At("pack/golden.h"), " /dev/null")}) {
      const std::string command =
          absl::StrCat(compiler, " -O2 -Wall -Wextra -Werror -c -o /dev/null ",
                       "-isystem " TILEWRIGHT_CUDA_INCLUDE " ", file);
      EXPECT_EQ(std::system(command.c_str()), 0) << command;
    }
  }
}

TEST_F(PackCudaLauncherTest, ACMakeProjectLinksThePackWithoutADriver) {
  fs::create_directories(At("user"));
  std::ofstream(At("user/CMakeLists.txt"))
      << "cmake_minimum_required(VERSION 3.16)\nproject(user LANGUAGES C)\n"
         "find_package(golden CONFIG REQUIRED)\nadd_executable(user main.c)\n"
         "target_link_libraries(user PRIVATE golden::golden)\n";
  // Without a driver, or with one but no context.
  std::ofstream(At("user/main.c"))
      << "#include \"golden.h\"\nint main(void) {\n  const int status = golden_load();\n"
         "  return status == TW_CUDA_NO_DRIVER || status == TW_CUDA_NO_CONTEXT ? 0 : 1;\n}\n";
  const std::string command = absl::StrCat(
      "cmake -S ", At("user"), " -B ", At("user/build"), " -DCMAKE_PREFIX_PATH=", At("pack"),
      " -Dgolden_CUDA_INCLUDE=" TILEWRIGHT_CUDA_INCLUDE " > ", At("log"), " 2>&1 && cmake --build ",
      At("user/build"), " >> ", At("log"), " 2>&1 && ", At("user/build/user"));
  EXPECT_EQ(std::system(command.c_str()), 0) << Contents(At("log"));
}

#endif

}  // namespace
}  // namespace tilewright
