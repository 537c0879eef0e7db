#include "codegen/kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace tilewright {
namespace {

using ::testing::HasSubstr;

Kernel Example() {
  Kernel kernel;
  kernel.objects = {{"elf-x86_64", "bytes"}};
  kernel.launches = {{"tw_0123456789abcdef",
                      4,
                      {{Argument::Kind::kBuffer, 0, 0},
                       {Argument::Kind::kSize, 1, 0},
                       {Argument::Kind::kInteger, 0, -7}}}};
  kernel.workspace = {128, 64, true};
  kernel.domain.sizes = {{1, 8192}, {64, 64}};
  kernel.domain.alignments = {4, 2};
  kernel.digests = {"aa", "", "bb"};
  kernel.resources = {{"code_bytes", 300}, {"spills", 0}};
  return kernel;
}

// docs/formats/recipe.md shows this line; a change of it needs a new recipe version.
constexpr char kGolden[] =
    R"({"digests":{"assembly":"","binary":"bb","ir":"aa"},"domain":{"alignments":[4,2],"sizes":[[1,8192],[64,64]]},)"
    R"("launches":[{"arguments":[{"kind":"buffer","number":0},{"kind":"size","number":1},{"kind":"integer","value":-7}],)"
    R"("entry":"tw_0123456789abcdef","threads":4}],"objects":[{"format":"elf-x86_64"}],)"
    R"("resources":{"code_bytes":300,"spills":0},"version":1,"workspace":{"alignment":64,"bytes":128,"zeroed":true}})";

TEST(Recipe, IsOneLineOfJsonWithSortedKeys) { EXPECT_EQ(Example().RecipeJson(), kGolden); }

TEST(Recipe, ReadsBackToTheSameKernelWithoutTheObjectsBytes) {
  auto read = ParseRecipe(kGolden);
  ASSERT_TRUE(read.ok()) << read.status();
  Kernel expected = Example();
  expected.objects[0].bytes.clear();
  EXPECT_EQ(*read, expected);
}

// Replaces the first `from` of the golden recipe and returns the message of the refusal.
std::string RefusalOf(const std::string& from, const std::string& to) {
  std::string text = kGolden;
  text.replace(text.find(from), from.size(), to);
  return std::string(ParseRecipe(text).status().message());
}

TEST(Recipe, NamesTheFieldThatIsMissingOrOfTheWrongType) {
  EXPECT_THAT(RefusalOf("\"threads\":4", "\"threads\":0"), HasSubstr("launches/0/threads"));
  EXPECT_THAT(RefusalOf("\"kind\":\"size\"", "\"kind\":\"tensor\""),
              HasSubstr("launches/0/arguments/1/kind"));
  EXPECT_THAT(RefusalOf("\"bytes\":128", "\"bytes\":\"x\""), HasSubstr("workspace/bytes"));
  EXPECT_THAT(RefusalOf("\"zeroed\":true", "\"zeroes\":true"), HasSubstr("workspace/zeroed"));
  EXPECT_THAT(RefusalOf("[64,64]", "[64]"), HasSubstr("domain/sizes"));
}

TEST(Recipe, RefusesANewerVersionByNumber) {
  EXPECT_THAT(RefusalOf("\"version\":1", "\"version\":4"),
              HasSubstr("version is 4; this build reads versions 1 to 3"));
}

Stride Fixed(int64_t value) { return {{{value, {}}}}; }

Kernel GpuExample() {
  Kernel kernel;
  kernel.objects = {{"cubin-sm_90a", "bytes"}};
  Launch launch;
  launch.entry = "tw_0123456789abcdef";
  launch.arguments = {{Argument::Kind::kBuffer, 0, 0},
                      {Argument::Kind::kSize, 0, 0},
                      {Argument::Kind::kTensorMap, 0, 0},
                      {Argument::Kind::kWorkspace, 0, 256}};
  launch.grid = {132, 1, 1};
  launch.block = 384;
  launch.cluster = 2;
  launch.shared_memory_bytes = 232448;
  launch.dependent_launch = true;
  kernel.launches = {launch};
  kernel.tensor_maps = {{.buffer = 0,
                         .offset_bytes = 32,
                         .type = ElementType::kBF16,
                         .dims = {{Fixed(64), Fixed(1)}, {{{{1, {0}}}}, Fixed(64)}},
                         .box = {64, 128},
                         .swizzle_bytes = 128,
                         .l2_promotion_bytes = 256}};
  kernel.workspace = {512, 256, true};
  kernel.domain.sizes = {{1, 8192}, {64, 64}};
  kernel.domain.alignments = {16, 2};
  kernel.digests = {"aa", "cc", "bb"};
  kernel.resources = {{"registers", 168}};
  return kernel;
}

// The second line of docs/formats/recipe.md.
constexpr char kGpuGolden[] =
    R"({"digests":{"assembly":"cc","binary":"bb","ir":"aa"},"domain":{"alignments":[16,2],"sizes":[[1,8192],[64,64]]},)"
    R"("launches":[{"arguments":[{"kind":"buffer","number":0},{"kind":"size","number":0},{"kind":"tensor_map","number":0},)"
    R"({"kind":"workspace","value":256}],"block":384,"cluster":2,"dependent_launch":true,"entry":"tw_0123456789abcdef",)"
    R"("grid":[132,1,1],"shared_memory_bytes":232448}],"objects":[{"format":"cubin-sm_90a"}],"resources":{"registers":168},)"
    R"("tensor_maps":[{"box":[64,128],"buffer":0,"dims":[{"extent":[{"coefficient":64,"sizes":[]}],"stride":[{"coefficient":1,"sizes":[]}]},)"
    R"({"extent":[{"coefficient":1,"sizes":[0]}],"stride":[{"coefficient":64,"sizes":[]}]}],"l2_promotion_bytes":256,"offset_bytes":32,"swizzle_bytes":128,)"
    R"("type":"bf16"}],"version":2,"workspace":{"alignment":256,"bytes":512,"zeroed":true}})";

TEST(Recipe, OfAGpuKernelHasGridsAndTensorMaps) {
  EXPECT_EQ(GpuExample().RecipeJson(), kGpuGolden);
}

TEST(Recipe, OfAGpuKernelReadsBack) {
  auto read = ParseRecipe(kGpuGolden);
  ASSERT_TRUE(read.ok()) << read.status();
  Kernel expected = GpuExample();
  expected.objects[0].bytes.clear();
  EXPECT_EQ(*read, expected);
}

// Only a caller that knows of flags may call such a kernel.
TEST(Recipe, OfAKernelWithFlagsHasAVersionOfItsOwn) {
  Kernel kernel = GpuExample();
  kernel.workspace = {.bytes = 512, .alignment = 256, .flag_bytes = 256};
  const std::string text = kernel.RecipeJson();
  EXPECT_THAT(text, HasSubstr(R"("version":3,"workspace":{"alignment":256,"bytes":512,)"
                              R"("flag_bytes":256,"zeroed":false}})"));
  auto read = ParseRecipe(text);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->workspace, kernel.workspace);
  std::string more = text;
  more.replace(more.find("\"flag_bytes\":256"), 16, "\"flag_bytes\":768");
  EXPECT_THAT(std::string(ParseRecipe(more).status().message()), HasSubstr("workspace/flag_bytes"));
}

std::string GpuRefusalOf(const std::string& from, const std::string& to) {
  std::string text = kGpuGolden;
  text.replace(text.find(from), from.size(), to);
  return std::string(ParseRecipe(text).status().message());
}

TEST(Recipe, OfAGpuKernelNamesTheFieldThatIsWrong) {
  EXPECT_THAT(GpuRefusalOf("[132,1,1]", "[132,1]"), HasSubstr("launches/0/grid"));
  EXPECT_THAT(GpuRefusalOf("[132,1,1]", "[132,0,1]"), HasSubstr("launches/0/grid"));
  EXPECT_THAT(GpuRefusalOf("\"block\":384", "\"block\":2048"), HasSubstr("launches/0/block"));
  EXPECT_THAT(GpuRefusalOf("\"cluster\":2", "\"cluster\":0"), HasSubstr("launches/0/cluster"));
  EXPECT_THAT(GpuRefusalOf("[64,128]", "[64,512]"), HasSubstr("tensor_maps/0/box"));
  EXPECT_THAT(GpuRefusalOf("[64,128]", "[64]"), HasSubstr("tensor_maps/0/box"));
  EXPECT_THAT(GpuRefusalOf("\"bf16\"", "\"bf17\""), HasSubstr("tensor_maps/0/type"));
  EXPECT_THAT(GpuRefusalOf("\"coefficient\":64", "\"factor\":64"),
              HasSubstr("tensor_maps/0/dims/0/extent/coefficient"));
  // The launches of version 1 are those of a CPU.
  EXPECT_THAT(GpuRefusalOf("\"version\":2", "\"version\":1"), HasSubstr("launches/0/threads"));
}

TEST(Recipe, RefusesTextThatIsNotJson) {
  EXPECT_THAT(ParseRecipe("{").status().message(), HasSubstr("not JSON"));
}

}  // namespace
}  // namespace tilewright
