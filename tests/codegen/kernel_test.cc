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
  EXPECT_THAT(RefusalOf("\"version\":1", "\"version\":2"),
              HasSubstr("version is 2; this build reads version 1"));
}

TEST(Recipe, RefusesTextThatIsNotJson) {
  EXPECT_THAT(ParseRecipe("{").status().message(), HasSubstr("not JSON"));
}

}  // namespace
}  // namespace tilewright
