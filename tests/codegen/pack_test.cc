#include "codegen/pack.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "codegen/pack_text.h"
#include "tests/codegen/two_launches.h"

namespace tilewright {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// The part of a pack's header that callers see (codegen/pack_host.cc).
struct Context {
  void (*parallel_for)(void* user, int32_t threads, void (*body)(void*, int32_t),
                       void* data) = nullptr;
  void* user = nullptr;
  void* workspace = nullptr;
  size_t workspace_bytes = 0;
};
enum { kOk, kNullPointer, kMisaligned, kSizeOutOfRange, kUnsuitedCpu, kBadWorkspace };

using AddSix = int (*)(const float* x, float* y, int64_t n, const Context* context);

PackItem MakeItem(const std::string& name, const std::string& expression = "Y[n] = X[n] + 6",
                  const std::string& sizes = "n=1..100") {
  Names names;
  absl::StatusOr<Workload> workload =
      Workload::Make(expression, {.sizes = sizes, .types = "f32"}, &names);
  EXPECT_TRUE(workload.ok()) << workload.status();
  return {.name = name,
          .workload = *workload,
          .names = names,
          .source = expression,
          .regime = "cache=cold chain=plain data=normal at=n:100",
          .schedule = {"test.two_launches", {{"unroll", "1"}}},
          .provenance = {"verdict", "1.20x"}};
}

std::string ReadAll(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

std::map<std::string, std::string> FilesOf(const fs::path& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file())
      files[fs::relative(entry.path(), directory).string()] = ReadAll(entry.path());
  }
  return files;
}

class PackTest : public ::testing::Test {
 protected:
  PackTest() {
    std::string pattern = absl::StrCat(::testing::TempDir(), "/pack_test_XXXXXX");
    directory_ = mkdtemp(pattern.data());
    options_ = {.name = "ops", .target = TwoLaunchesTarget(), .catalogue = TwoLaunchesCatalogue()};
  }
  ~PackTest() override { fs::remove_all(directory_); }

  std::string At(const std::string& name) const { return (directory_ / name).string(); }

  // Builds and writes to At("pack").
  Pack MustBuild(const std::vector<PackItem>& items) {
    absl::StatusOr<Pack> pack = BuildPack(items, options_);
    EXPECT_TRUE(pack.ok()) << pack.status();
    absl::Status written = WritePack(*pack, At("pack"));
    EXPECT_TRUE(written.ok()) << written;
    return *pack;
  }

  // Compiles the pack as a user's build would, strictly, and loads it.
  void* Load() {
    const std::string library = absl::StrCat(At("ops"), ++loaded_, ".so");
    const std::string command =
        absl::StrCat("cc -std=c11 -O1 -Wall -Wextra -Werror -shared -fPIC -o ", library, " ",
                     At("pack/launcher.c"), " ", At("pack/kernels/"), "*.o");
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(handle, nullptr) << dlerror();
    return handle;
  }
  AddSix LoadAddSix(const char* name = "add_six") {
    return reinterpret_cast<AddSix>(dlsym(Load(), name));
  }

  fs::path directory_;
  PackOptions options_;
  int loaded_ = 0;
};

std::vector<float> Ramp(int n) {
  std::vector<float> x(n);
  for (int i = 0; i < n; ++i) x[i] = i * 0.5f;
  return x;
}

void ExpectSixMore(const std::vector<float>& x, const std::vector<float>& y, int n) {
  for (int i = 0; i < n; ++i) ASSERT_EQ(y[i], x[i] + 6) << i;
  for (int i = n; i < y.size(); ++i) ASSERT_EQ(y[i], -1) << i;
}

TEST_F(PackTest, AFunctionComputesItsWorkloadAtEverySizeOfItsRange) {
  MustBuild({MakeItem("add_six")});
  AddSix add_six = LoadAddSix();
  ASSERT_NE(add_six, nullptr);
  const std::vector<float> x = Ramp(100);
  for (int n : {1, 2, 37, 100}) {
    std::vector<float> y(100, -1.0f);
    ASSERT_EQ(add_six(x.data(), y.data(), n, nullptr), kOk);
    ExpectSixMore(x, y, n);
  }
}

TEST_F(PackTest, AFunctionRefusesWhatItsDomainExcludesAndWritesNothing) {
  MustBuild({MakeItem("add_six")});
  AddSix add_six = LoadAddSix();
  ASSERT_NE(add_six, nullptr);
  const std::vector<float> x = Ramp(101);
  std::vector<float> y(101, -1.0f);
  EXPECT_EQ(add_six(x.data(), y.data(), 0, nullptr), kSizeOutOfRange);
  EXPECT_EQ(add_six(x.data(), y.data(), 101, nullptr), kSizeOutOfRange);
  EXPECT_EQ(add_six(nullptr, y.data(), 5, nullptr), kNullPointer);
  EXPECT_EQ(add_six(x.data(), nullptr, 5, nullptr), kNullPointer);
  auto* askew = reinterpret_cast<float*>(reinterpret_cast<char*>(y.data()) + 1);
  EXPECT_EQ(add_six(x.data(), askew, 5, nullptr), kMisaligned);
  alignas(64) char workspace[64];
  Context small{.workspace = workspace, .workspace_bytes = 11};
  EXPECT_EQ(add_six(x.data(), y.data(), 5, &small), kBadWorkspace);
  Context skewed{.workspace = workspace + 4, .workspace_bytes = 60};
  EXPECT_EQ(add_six(x.data(), y.data(), 5, &skewed), kBadWorkspace);
  ExpectSixMore(x, y, 0);
}

TEST_F(PackTest, ParallelForRunsEveryThreadOfALaunchBeforeTheNext) {
  MustBuild({MakeItem("add_six")});
  AddSix add_six = LoadAddSix();
  ASSERT_NE(add_six, nullptr);
  std::vector<int> launches;
  Context context;
  context.user = &launches;
  context.parallel_for = [](void* user, int32_t threads, void (*body)(void*, int32_t), void* data) {
    static_cast<std::vector<int>*>(user)->push_back(threads);
    std::vector<std::thread> running;
    for (int32_t t = threads - 1; t >= 0; --t) running.emplace_back(body, data, t);
    for (std::thread& thread : running) thread.join();
  };
  const std::vector<float> x = Ramp(100);
  std::vector<float> y(100, -1.0f);
  ASSERT_EQ(add_six(x.data(), y.data(), 100, &context), kOk);
  ExpectSixMore(x, y, 100);
  EXPECT_THAT(launches, ElementsAre(3, 2));
}

TEST_F(PackTest, TheCallersWorkspaceIsClearedBeforeEachCallWhereTheKernelWantsIt) {
  MustBuild({MakeItem("add_six")});
  void* library = Load();
  auto add_six = reinterpret_cast<AddSix>(dlsym(library, "add_six"));
  auto bytes = reinterpret_cast<size_t (*)()>(dlsym(library, "add_six_workspace_bytes"));
  ASSERT_NE(add_six, nullptr);
  ASSERT_NE(bytes, nullptr);
  EXPECT_EQ(bytes(), 12);
  alignas(64) char workspace[64];
  std::fill(std::begin(workspace), std::end(workspace), 0x55);
  Context context{.workspace = workspace, .workspace_bytes = bytes()};
  const std::vector<float> x = Ramp(100);
  for (int call = 0; call < 3; ++call) {
    std::vector<float> y(100, -1.0f);
    ASSERT_EQ(add_six(x.data(), y.data(), 100, &context), kOk);
    ExpectSixMore(x, y, 100);
  }
  EXPECT_EQ(workspace[12], 0x55);
}

TEST_F(PackTest, ManyThreadsMayCallAtOnce) {
  MustBuild({MakeItem("add_six")});
  AddSix add_six = LoadAddSix();
  ASSERT_NE(add_six, nullptr);
  const std::vector<float> x = Ramp(100);
  std::vector<std::vector<float>> ys(4, std::vector<float>(100, -1.0f));
  std::vector<std::thread> callers;
  for (std::vector<float>& y : ys) {
    callers.emplace_back([&] {
      for (int i = 0; i < 200; ++i) add_six(x.data(), y.data(), 100, nullptr);
    });
  }
  for (std::thread& caller : callers) caller.join();
  for (const std::vector<float>& y : ys) ExpectSixMore(x, y, 100);
}

TEST_F(PackTest, AFunctionRefusesACpuThatLacksWhatItsKernelNeeds) {
  // FMA4 is found on no processor that has AVX2's successors; the kernel itself would run anywhere.
  if (__builtin_cpu_supports("fma4")) GTEST_SKIP() << "this CPU has FMA4";
  options_.target.llvm_features = "+avx2,+fma,+fma4";
  MustBuild({MakeItem("add_six")});
  AddSix add_six = LoadAddSix();
  ASSERT_NE(add_six, nullptr);
  const std::vector<float> x = Ramp(100);
  std::vector<float> y(100, -1.0f);
  EXPECT_EQ(add_six(x.data(), y.data(), 100, nullptr), kUnsuitedCpu);
  ExpectSixMore(x, y, 0);
}

TEST_F(PackTest, TheHeaderIsCAndCxxAndNamesArgumentsAsTheCallerDid) {
  MustBuild({MakeItem("add_six", "out[int] = in[int] + 6", "int=1..100"), MakeItem("again")});
  const std::string header = ReadAll(At("pack/ops.h"));
  EXPECT_THAT(
      header,
      HasSubstr(
          "int add_six(const float* in, float* out, int64_t int_, const tw_context* context);"));
  EXPECT_THAT(header, HasSubstr("f32 [int=1..100]"));
  for (const char* compiler : {"cc -x c -std=c11 -pedantic", "c++ -x c++ -std=c++11"}) {
    const std::string command = absl::StrCat(
        compiler, " -Wall -Wextra -Werror -fsyntax-only -include ", At("pack/ops.h"), " /dev/null");
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
  }
}

TEST_F(PackTest, ArgumentsFollowTheCallersOrderWhateverTheCanonicalOneIs) {
  for (const std::string text :
       {"C[m,n] = sum(k: left[m,k] * right[k,n])", "C[m,n] = sum(k: right[k,n] * left[m,k])"}) {
    PackItem item = MakeItem("product", text, "m=4 n=5..6 k=7..9");
    absl::StatusOr<PackSignature> signature = SignatureOf(item);
    ASSERT_TRUE(signature.ok()) << signature.status();
    std::vector<std::string> names;
    for (const PackTensor& tensor : signature->tensors) {
      names.push_back(tensor.name);
      // A name goes with the buffer that the kernel knows it as.
      EXPECT_EQ(item.names.tensors[tensor.tensor], tensor.name);
    }
    const bool left_first = text.find("left") < text.find("right");
    EXPECT_THAT(names,
                left_first ? ElementsAre("left", "right", "C") : ElementsAre("right", "left", "C"));
    ASSERT_EQ(signature->sizes.size(), 2);
    EXPECT_EQ(signature->sizes[0].name, "n");
    EXPECT_EQ(signature->sizes[1].name, "k");
  }
}

TEST_F(PackTest, ACMakeProjectFindsThePackageAndLinksIt) {
  MustBuild({MakeItem("add_six")});
  fs::create_directories(At("user"));
  std::ofstream(At("user/CMakeLists.txt"))
      << "cmake_minimum_required(VERSION 3.16)\nproject(user LANGUAGES C)\n"
         "find_package(ops CONFIG REQUIRED)\nadd_executable(user main.c)\n"
         "target_link_libraries(user PRIVATE ops::ops)\n";
  std::ofstream(At("user/main.c"))
      << "#include \"ops.h\"\nint main(void) {\n  float x[3] = {1, 2, 3}, y[3];\n"
         "  return add_six(x, y, 3, 0) == TW_OK && y[2] == 9 ? 0 : 1;\n}\n";
  const std::string command =
      absl::StrCat("cmake -G Ninja -S ", At("user"), " -B ", At("user/build"),
                   " -DCMAKE_PREFIX_PATH=", At("pack"), " > ", At("log"), " 2>&1 && cmake --build ",
                   At("user/build"), " >> ", At("log"), " 2>&1 && ", At("user/build/user"));
  EXPECT_EQ(std::system(command.c_str()), 0) << ReadAll(At("log"));
}

TEST_F(PackTest, TheSameItemsGiveTheSameBytes) {
  MustBuild({MakeItem("add_six"), MakeItem("b")});
  const std::map<std::string, std::string> first = FilesOf(At("pack"));
  EXPECT_EQ(first.size(), 5);  // two workloads, one kernel
  MustBuild({MakeItem("add_six"), MakeItem("b")});
  EXPECT_EQ(FilesOf(At("pack")), first);
  EXPECT_THAT(FilesOf(directory_).size(), first.size());  // no temporary directory is left
}

TEST_F(PackTest, ReadsBackWhatItWrote) {
  const Pack written = MustBuild({MakeItem("add_six")});
  absl::StatusOr<Pack> read = ReadPack(At("pack"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(ManifestJson(*read), ManifestJson(written));
  EXPECT_EQ(read->entries[0].kernel, written.entries[0].kernel);
  EXPECT_EQ(read->entries[0].item.names.tensors, written.entries[0].item.names.tensors);
  EXPECT_EQ(PackHeader(*read), PackHeader(written));
}

TEST_F(PackTest, ReusesUnchangedEntriesByteForByteWithoutACodeGenerator) {
  const Pack old = MustBuild({MakeItem("add_six")});
  const std::map<std::string, std::string> first = FilesOf(At("pack"));
  options_.reuse = At("pack");
  options_.catalogue = {};  // nothing can be written any more
  PackItem item = MakeItem("add_six");
  item.expected = old.entries[0].kernel.digests;
  absl::StatusOr<Pack> pack = BuildPack({item}, options_);
  ASSERT_TRUE(pack.ok()) << pack.status();
  EXPECT_TRUE(pack->entries[0].reused);
  EXPECT_THAT(pack->entries[0].digest_mismatch, IsEmpty());
  ASSERT_TRUE(WritePack(*pack, At("other")).ok());
  EXPECT_EQ(FilesOf(At("other")), first);
}

TEST_F(PackTest, RebuildsWhatChangedInsteadOfReusingIt) {
  const Pack old = MustBuild({MakeItem("add_six")});
  options_.reuse = At("pack");
  PackItem scheduled = MakeItem("scheduled");
  scheduled.schedule.decisions[0].second = "2";
  PackItem expecting = MakeItem("expecting");
  expecting.expected.ir = std::string(64, 'a');
  absl::StatusOr<Pack> pack = BuildPack({MakeItem("same"), scheduled, expecting}, options_);
  ASSERT_TRUE(pack.ok()) << pack.status();
  EXPECT_TRUE(pack->entries[0].reused);
  EXPECT_FALSE(pack->entries[1].reused);
  EXPECT_FALSE(pack->entries[2].reused);
  EXPECT_THAT(pack->entries[2].digest_mismatch, HasSubstr("ir: expected aaaaaaaaaaaaaaaa, got "));
  options_.target.l2_bytes *= 2;
  absl::StatusOr<Pack> elsewhere = BuildPack({MakeItem("same")}, options_);
  ASSERT_TRUE(elsewhere.ok()) << elsewhere.status();
  EXPECT_FALSE(elsewhere->entries[0].reused);
}

TEST_F(PackTest, RefusesADamagedPackToReuse) {
  MustBuild({MakeItem("add_six")});
  options_.reuse = At("nothing");
  EXPECT_EQ(BuildPack({MakeItem("add_six")}, options_).status().code(),
            absl::StatusCode::kNotFound);
  options_.reuse = At("pack");
  for (const auto& [name, bytes] : FilesOf(At("pack"))) {
    if (name.ends_with(".o")) std::ofstream(At("pack/" + name), std::ios::app) << "x";
  }
  EXPECT_EQ(BuildPack({MakeItem("add_six")}, options_).status().code(),
            absl::StatusCode::kDataLoss);
}

TEST_F(PackTest, RefusesToOverwriteADirectoryThatIsNoPack) {
  absl::StatusOr<Pack> pack = BuildPack({MakeItem("add_six")}, options_);
  ASSERT_TRUE(pack.ok()) << pack.status();
  fs::create_directories(At("home"));
  std::ofstream(At("home/thesis.tex")) << "text";
  EXPECT_EQ(WritePack(*pack, At("home")).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(ReadAll(At("home/thesis.tex")), "text");
  fs::create_directories(At("empty"));
  EXPECT_TRUE(WritePack(*pack, At("empty/")).ok());
  EXPECT_TRUE(fs::exists(At("empty/manifest.json")));
  EXPECT_TRUE(WritePack(*pack, At("empty")).ok());  // a pack is replaced
  std::ofstream(At("empty/notes.txt")) << "mine";
  const absl::Status refused = WritePack(*pack, At("empty"));
  EXPECT_EQ(refused.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("holds notes.txt"));
  EXPECT_EQ(ReadAll(At("empty/notes.txt")), "mine");
}

TEST_F(PackTest, RefusesNamesThatCannotBeFunctions) {
  for (const char* name : {"", "2mm", "a-b", "class", "tw_x", "_x", "a__b", "exp", "main", "errno",
                           "atomic_load", "cuInit", "CUresult", "pthread_create"}) {
    EXPECT_EQ(CheckPackSymbol(name).code(), absl::StatusCode::kInvalidArgument) << name;
  }
  EXPECT_TRUE(CheckPackSymbol("demo_matmul2").ok());
  EXPECT_TRUE(CheckPackSymbol("cumulative_sum").ok());
  EXPECT_THAT(std::string(BuildPack({MakeItem("a"), MakeItem("a")}, options_).status().message()),
              HasSubstr("'a'"));
  EXPECT_FALSE(BuildPack({MakeItem("a"), MakeItem("a_workspace_bytes")}, options_).ok());
}

TEST_F(PackTest, RefusesATargetWithoutALauncher) {
  options_.target.backend = "abacus";
  const absl::StatusOr<Pack> pack = BuildPack({MakeItem("add_six")}, options_);
  EXPECT_EQ(pack.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(
      std::string(pack.status().message()),
      HasSubstr("there are launchers for the backends host and nvptx only, not for abacus"));
}

TEST_F(PackTest, NamesTheWorkloadWhoseScheduleIsIllegal) {
  PackItem item = MakeItem("broken");
  item.schedule.decisions[0].second = "3";
  absl::StatusOr<Pack> pack = BuildPack({item}, options_);
  EXPECT_EQ(pack.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(pack.status().message()), HasSubstr("'broken'"));
}

// The golden file was written by version 1 of the format; every later reader must take it.
TEST_F(PackTest, ReadsTheManifestOfVersion1) {
  const std::string golden = ReadAll(TILEWRIGHT_GOLDEN "/manifest_v1.json");
  ASSERT_FALSE(golden.empty());
  absl::StatusOr<Pack> pack = ParseManifest(golden, [](const std::string&) { return "object"; });
  ASSERT_TRUE(pack.ok()) << pack.status();
  EXPECT_EQ(pack->name, "golden");
  ASSERT_EQ(pack->entries.size(), 1);
  EXPECT_EQ(pack->entries[0].item.name, "add_six");
  EXPECT_EQ(pack->entries[0].item.provenance.kind, "verdict");
  EXPECT_EQ(pack->entries[0].kernel.launches.size(), 2);
  EXPECT_EQ(ManifestJson(*pack), golden);
}

TEST_F(PackTest, RefusesManifestsThatAreNewerOrBroken) {
  const std::string golden = ReadAll(TILEWRIGHT_GOLDEN "/manifest_v1.json");
  auto parse = [](const std::string& text) {
    return ParseManifest(text, [](const std::string&) { return "object"; }).status();
  };
  std::string newer = golden;
  newer.replace(newer.find("\"version\": 1"), 12, "\"version\": 3");
  EXPECT_EQ(parse(newer).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(parse(golden.substr(0, golden.size() / 2)).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(parse("[]").code(), absl::StatusCode::kInvalidArgument);
  std::string renamed = golden;
  renamed.replace(renamed.find("\"schedule\""), 10, "\"scheduel\"");
  EXPECT_THAT(std::string(parse(renamed).message()), HasSubstr("workloads/0/dispatch/0/schedule"));
}

}  // namespace
}  // namespace tilewright
