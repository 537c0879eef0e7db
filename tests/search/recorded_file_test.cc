#include "search/recorded_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace tilewright {
namespace {

using ::testing::Contains;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// An imagined kernel's exhaustively recorded space: five parameters (integers, a boolean, a text, a
// decimal fraction), two constraints, two kinds of failure.
constexpr char kCache[] = TILEWRIGHT_TEST_DATA "/recorded_cache.json";

std::string ReadAll(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class RecordedFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/recorded-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string Path(const std::string& name) const { return absl::StrCat(directory_, "/", name); }
  absl::StatusOr<RecordedFile> Read(const std::string& text) const {
    std::ofstream(Path("space.json")) << text;
    return ReadRecordedFile(Path("space.json"), {});
  }
  RecordedFile MustRead(const std::string& text) const {
    absl::StatusOr<RecordedFile> file = Read(text);
    EXPECT_TRUE(file.ok()) << file.status();
    return file.ok() ? *std::move(file) : RecordedFile{};
  }
  std::string MessageFor(const std::string& text) const {
    const absl::StatusOr<RecordedFile> file = Read(text);
    EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(file.status().message());
  }

 private:
  std::string directory_;
};

// A small cache with these entries after those of a=1 and a=2.
std::string Cache(const std::string& more_entries, const std::string& end = "}}") {
  return absl::StrCat(
      R"({"device_name":"d","kernel_name":"k","tune_params_keys":["a"],"cache":{
"1":{"a":1,"time":2.5,"times":[2.4,2.6]},
"2":{"a":2,"time":1.5,"times":[1.5,1.5]})",
      more_entries, end);
}

void ExpectTheSame(const RecordedSpace& a, const RecordedSpace& b) {
  ASSERT_EQ(a.Count(), b.Count());
  for (absl::uint128 i = 0; i < a.Count(); ++i) {
    EXPECT_EQ(a.At(i), b.At(i));
    EXPECT_EQ(a.configuration(i).key, b.configuration(i).key);
    EXPECT_EQ(a.configuration(i).milliseconds, b.configuration(i).milliseconds);
    EXPECT_EQ(a.configuration(i).failure, b.configuration(i).failure);
    EXPECT_EQ(a.configuration(i).samples, b.configuration(i).samples);
  }
}

// The T4 results of a space, last configuration first.
std::string T4Of(const RecordedSpace& space, const std::string& unit, double in_milliseconds) {
  std::vector<std::string> results;
  for (absl::uint128 i = space.Count(); i-- > 0;) {
    const RecordedConfiguration& from = space.configuration(i);
    std::vector<std::string> values;
    for (const auto& [name, token] : from.schedule.decisions) {
      const std::string value = token == "True"    ? "true"
                                : token == "False" ? "false"
                                : name == "layout" ? absl::StrCat("\"", token, "\"")
                                                   : token;
      values.push_back(absl::StrCat("\"", name, "\":", value));
    }
    std::vector<std::string> samples;
    for (double sample : from.samples)
      samples.push_back(absl::StrFormat("%.17g", sample / in_milliseconds));
    results.push_back(absl::StrCat(
        R"({"configuration":{)", absl::StrJoin(values, ","), R"(},"times":{"runtimes":[)",
        absl::StrJoin(samples, ","), R"(]},"invalidity":")",
        from.milliseconds ? "correct" : "runtime",
        R"(","correctness":1,"objectives":["time"],"measurements":[{"name":"time","value":)",
        from.milliseconds ? absl::StrFormat("%.17g", *from.milliseconds / in_milliseconds)
                          : absl::StrCat("\"", from.failure, "\""),
        R"(,"unit":""}]})"));
  }
  return absl::StrCat(R"({"metadata":{"timeunit":")", unit, R"("},"results":[)",
                      absl::StrJoin(results, ",\n"), R"(],"schema_version":"1.0.0"})");
}

TEST_F(RecordedFileTest, ReadsAKernelTunerCache) {
  const absl::StatusOr<RecordedFile> file = ReadRecordedFile(kCache, {});
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->device, "Imagined 9000");
  EXPECT_EQ(file->kernel, "stencil");
  EXPECT_THAT(file->warnings, IsEmpty());
  const RecordedSpace& space = *file->space;
  EXPECT_EQ(space.Count(), 304);
  EXPECT_EQ(space.ascending_milliseconds().size(), 256);
  const RecordedConfiguration& first = space.configuration(*space.IndexOfKey("16,1,False,row,0.5"));
  EXPECT_EQ(first.schedule.ToString(),
            "recorded{block=16 tile=1 unroll=False layout=row scale=0.5}");
  EXPECT_EQ(first.milliseconds, 2.458682);
  EXPECT_THAT(first.samples, ElementsAre(2.459115, 2.443762, 2.491429, 2.440422));
  const RecordedConfiguration& failed = space.configuration(*space.IndexOfKey("16,8,True,row,0.5"));
  EXPECT_EQ(failed.milliseconds, std::nullopt);
  EXPECT_EQ(failed.failure, "CompilationFailedConfig");
}

TEST_F(RecordedFileTest, ReadsTheSameFromACompressedFile) {
  const std::string text = ReadAll(kCache);
  const gzFile compressed = gzopen(Path("c.json.gz").c_str(), "wb");
  ASSERT_EQ(gzwrite(compressed, text.data(), text.size()), static_cast<int>(text.size()));
  gzclose(compressed);
  const absl::StatusOr<RecordedFile> plain = ReadRecordedFile(kCache, {});
  const absl::StatusOr<RecordedFile> packed = ReadRecordedFile(Path("c.json.gz"), {});
  ASSERT_TRUE(packed.ok()) << packed.status();
  ExpectTheSame(*plain->space, *packed->space);
}

TEST_F(RecordedFileTest, ReadsWhatIsLeftOfACompressedFileThatWasCut) {
  // Without matches, so that what is left of the data is near what is left of the text.
  const gzFile compressed = gzopen(Path("c.gz").c_str(), "wb0");
  const std::string text = ReadAll(kCache);
  gzwrite(compressed, text.data(), text.size());
  gzclose(compressed);
  std::filesystem::resize_file(Path("c.gz"), text.size() / 2);
  const absl::StatusOr<RecordedFile> file = ReadRecordedFile(Path("c.gz"), {});
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_GT(file->space->Count(), 50);
  EXPECT_LT(file->space->Count(), 304);
  EXPECT_THAT(file->warnings, Contains(HasSubstr("compressed data end early")));
}

TEST_F(RecordedFileTest, ReadsTheSameFromT4Results) {
  const absl::StatusOr<RecordedFile> cache = ReadRecordedFile(kCache, {});
  const RecordedFile t4 = MustRead(T4Of(*cache->space, "milliseconds", 1));
  ExpectTheSame(*cache->space, *t4.space);
  EXPECT_THAT(t4.warnings, IsEmpty());
}

TEST_F(RecordedFileTest, ReadsEveryUnitOfTimeAndReportsAMisspeltOneOnce) {
  const absl::StatusOr<RecordedFile> cache = ReadRecordedFile(kCache, {});
  const double fastest = cache->space->ascending_milliseconds().front();
  const RecordedFile misspelt = MustRead(T4Of(*cache->space, "miliseconds", 1));
  ExpectTheSame(*cache->space, *misspelt.space);
  EXPECT_THAT(misspelt.warnings, ElementsAre(HasSubstr("`miliseconds` is misspelt")));
  for (const auto& [unit, milliseconds] : {std::pair("Microseconds", 1e-3), std::pair("s", 1e3),
                                           std::pair("ns", 1e-6), std::pair("ms", 1.0)}) {
    const RecordedFile file = MustRead(T4Of(*cache->space, unit, milliseconds));
    EXPECT_THAT(file.space->ascending_milliseconds().front(), DoubleNear(fastest, 1e-12)) << unit;
    EXPECT_THAT(file.space->configuration(0).samples[0],
                DoubleNear(cache->space->configuration(0).samples[0], 1e-12))
        << unit;
  }
  EXPECT_THAT(MessageFor(T4Of(*cache->space, "fortnights", 1)),
              HasSubstr("unknown time unit `fortnights`; units are seconds, milliseconds"));
}

TEST_F(RecordedFileTest, AMeasurementsOwnUnitCountsBeforeTheFiles) {
  const RecordedFile file = MustRead(
      R"({"metadata":{"timeunit":"milliseconds"},"results":[{"configuration":{"a":1},
"times":{},"invalidity":"correct","correctness":1,
"measurements":[{"name":"time","value":5,"unit":"Microseconds"}]}]})");
  EXPECT_EQ(file.space->configuration(0).milliseconds, 5e-3);
}

TEST_F(RecordedFileTest, ReadsACacheWithoutItsClosingBraces) {
  for (const char* end : {"", ",", ",\n", "}", "},", ",\n\"3\":{\"a\":3,\"time\":1",
                          ",\n\"3\":{\"a\":3,\"time\":\"Runt", ",\n\"3\":", ",\n\"3"}) {
    const RecordedFile file = MustRead(Cache("", end));
    EXPECT_EQ(file.space->Count(), 2) << end;
    EXPECT_EQ(file.space->configuration(1).milliseconds, 1.5) << end;
    EXPECT_THAT(file.warnings, Contains(HasSubstr("it ends before its closing braces"))) << end;
  }
}

TEST_F(RecordedFileTest, ReadsT4ResultsWithoutTheirClosingBraces) {
  const absl::StatusOr<RecordedFile> cache = ReadRecordedFile(kCache, {});
  std::string text = T4Of(*cache->space, "milliseconds", 1);
  text.resize(text.size() / 2);
  const RecordedFile file = MustRead(text);
  EXPECT_GT(file.space->Count(), 100);
  EXPECT_THAT(file.warnings, Contains(HasSubstr("it ends before its closing braces")));
}

TEST_F(RecordedFileTest, ReadsACacheWithCommasAndTextThatDoNotBelong) {
  EXPECT_EQ(MustRead(Cache(",\n", "}\n,}")).space->Count(), 2);
  EXPECT_EQ(MustRead(Cache(R"(,"3":{"a":3,"time":1,"note":"a,}b"},)")).space->Count(), 3);
  const RecordedFile more = MustRead(Cache("", "}}}}"));
  EXPECT_EQ(more.space->Count(), 2);
  EXPECT_THAT(more.warnings, ElementsAre("text after its end is ignored"));
}

TEST_F(RecordedFileTest, TakesWhatIsNoTimeForAFailure) {
  const RecordedFile file = MustRead(Cache(R"(,
"3":{"a":3,"time":"InvalidConfig"},
"4":{"a":4,"time":1.0,"__error__":"RuntimeFailedConfig"},
"5":{"a":5,"time":1e20},
"6":{"a":6,"time":NaN},
"7":{"a":7,"time":Infinity},
"8":{"a":8,"time":-1},
"9":{"a":9})"));
  const RecordedSpace& space = *file.space;
  ASSERT_EQ(space.Count(), 9);
  for (int i = 2; i < 9; ++i) EXPECT_EQ(space.configuration(i).milliseconds, std::nullopt) << i;
  EXPECT_EQ(space.configuration(2).failure, "InvalidConfig");
  EXPECT_EQ(space.configuration(3).failure, "RuntimeFailedConfig");
  EXPECT_THAT(file.warnings, Contains(HasSubstr("1e20 or more")));
  EXPECT_THAT(file.warnings, Contains(HasSubstr("is not positive and finite")));
  EXPECT_THAT(file.warnings, Contains(HasSubstr("no time is given")));
}

TEST_F(RecordedFileTest, TakesTimesThatNoQuotientSurvivesForFailures) {
  const RecordedFile file = MustRead(Cache(R"(,
"3":{"a":3,"time":1e999},
"4":{"a":4,"time":-1e999},
"5":{"a":5,"time":1e-320},
"6":{"a":6,"time":1e-20,"times":[1e-320,1e-19,1e999]})"));
  const RecordedSpace& space = *file.space;
  for (int i = 2; i < 5; ++i) EXPECT_EQ(space.configuration(i).milliseconds, std::nullopt) << i;
  EXPECT_EQ(space.configuration(5).milliseconds, 1e-20);
  EXPECT_THAT(space.configuration(5).samples, ElementsAre(1e-19));
  EXPECT_THAT(file.warnings, ElementsAre(HasSubstr("3 configurations are counted as failed")));
  // A unit takes part: this is 1e-24 ms.
  const RecordedFile fast = MustRead(
      R"({"metadata":{"timeunit":"ns"},"results":[
{"configuration":{"a":1},"invalidity":"correct","measurements":[{"name":"time","value":1e-18}]},
{"configuration":{"a":2},"invalidity":"correct","measurements":[{"name":"time","value":1}]}]})");
  EXPECT_EQ(fast.space->configuration(0).milliseconds, std::nullopt);
}

TEST_F(RecordedFileTest, TellsParametersApartThatAreNotFiniteOrNested) {
  const RecordedFile odd = MustRead(Cache(R"(,
"3":{"a":NaN,"time":1},"4":{"a":Infinity,"time":1},"5":{"a":-Infinity,"time":1},
"7":{"a":{"x":1},"time":1},"8":{"a":{"x":2},"time":1},
"9":{"a":[1,"b"],"time":1},"10":{"a":["1","b"],"time":1},"11":{"a":"NaN","time":1})"));
  EXPECT_THAT(odd.warnings, IsEmpty());
  EXPECT_EQ(odd.space->Count(), 10);
  EXPECT_THAT(MessageFor(Cache(R"(,"3":{"a":Infinity,"time":1},"4":{"a":1e999,"time":1})")),
              HasSubstr("configurations `3` and `4` choose the same"));
}

TEST_F(RecordedFileTest, SaysWhereANumberStandsThatIsNoName) {
  EXPECT_THAT(MessageFor(R"({"cache":{NaN:{"a":1}}})"), HasSubstr("where a name is expected"));
  EXPECT_THAT(MessageFor(R"({"cache":{1e999:{"a":1}}})"), HasSubstr("where a name is expected"));
  EXPECT_THAT(MessageFor(R"({"a":"NaN", 1e999})"), HasSubstr("where a name is expected"));
}

TEST_F(RecordedFileTest, CountsTheLastOfTwoValuesOfOneParameter) {
  const RecordedFile file = MustRead(
      R"({"results":[
{"configuration":{"a":1,"b":5,"a":2},"measurements":[{"name":"time","value":1}]},
{"configuration":{"a":1,"b":5},"measurements":[{"name":"time","value":2}]}]})");
  ASSERT_EQ(file.space->Count(), 2);
  EXPECT_EQ(file.space->At(1).ToString(), "recorded{a=2 b=5}");
  EXPECT_TRUE(file.space->IndexOfKey("2,5").ok());
}

TEST_F(RecordedFileTest, KeepsT4ConfigurationsApartThatDifferInsideAnObject) {
  const RecordedFile file = MustRead(
      R"({"results":[
{"configuration":{"a":{"x":1}},"measurements":[{"name":"time","value":1}]},
{"configuration":{"a":{"x":"1"}},"measurements":[{"name":"time","value":2}]}]})");
  EXPECT_EQ(file.space->Count(), 2);
  EXPECT_THAT(file.warnings, IsEmpty());
}

TEST_F(RecordedFileTest, ShowsAKernelsNameOnOneLine) {
  const RecordedFile file = MustRead(absl::StrReplaceAll(
      Cache(""), {{R"("kernel_name":"k")", R"("kernel_name":"k\n\u001b[2J\u007fx")"}}));
  EXPECT_EQ(file.kernel, "k  [2J x");
}

TEST_F(RecordedFileTest, LeavesSamplesOutThatAreNoTimes) {
  const RecordedFile file =
      MustRead(Cache(R"(,"3":{"a":3,"time":1,"times":[1.5,"x",NaN,0,-2,1e20,0.5]})"));
  EXPECT_THAT(file.space->configuration(2).samples, ElementsAre(1.5, 0.5));
}

TEST_F(RecordedFileTest, WarnsOfACacheThatNamesNoDevice) {
  const RecordedFile file =
      MustRead(absl::StrReplaceAll(Cache(""), {{R"("device_name":"d")", R"("device_name":"")"}}));
  EXPECT_THAT(file.warnings, ElementsAre("it names no device"));
}

TEST_F(RecordedFileTest, LeavesConfigurationsOutThatLackAParameterAndCountsTheLastOfTwo) {
  const RecordedFile file = MustRead(Cache(R"(,"3":{"time":1},"2":{"a":2,"time":1.25})"));
  EXPECT_EQ(file.space->Count(), 2);
  EXPECT_EQ(file.space->configuration(1).milliseconds, 1.25);
  EXPECT_THAT(file.warnings, ElementsAre(HasSubstr("1 configuration is left out: `a` has no value"),
                                         HasSubstr("recorded twice")));
}

TEST_F(RecordedFileTest, ReadsOrRefusesWhateverIsCutOrChangedInAFile) {
  const absl::StatusOr<RecordedFile> cache = ReadRecordedFile(kCache, {});
  std::string t4 = T4Of(*cache->space, "milliseconds", 1);
  std::mt19937_64 random(1);
  for (std::string whole : {ReadAll(kCache), t4}) {
    whole.resize(6000);
    for (int i = 0; i < 300; ++i) {
      std::string text = whole;
      text.resize(random() % text.size());
      (void)Read(text);
      text = whole;
      for (int change = 0; change < 3; ++change)
        text[random() % text.size()] = "{}[],:\"\\0N-\n\xff"[random() % 13];
      (void)Read(text);
    }
  }
  EXPECT_THAT(MessageFor(std::string(100000, '[')), HasSubstr("levels of lists and objects"));
}

TEST_F(RecordedFileTest, SaysWhatItCannotRead) {
  EXPECT_TRUE(absl::IsNotFound(ReadRecordedFile(Path("none.json"), {}).status()));
  EXPECT_THAT(MessageFor(""), HasSubstr("neither JSON nor a tuning log"));
  EXPECT_THAT(MessageFor("time,a\n1,2\n"), HasSubstr("neither JSON nor a tuning log"));
  EXPECT_THAT(MessageFor("{}"), HasSubstr("neither a Kernel Tuner cache"));
  EXPECT_THAT(MessageFor("[1,2]"), HasSubstr("neither a Kernel Tuner cache"));
  EXPECT_THAT(MessageFor(R"({"cache":{"1":{"a":1}}})"), HasSubstr("`tune_params_keys` is missing"));
  EXPECT_THAT(
      MessageFor(R"({"tune_params_keys":["a",1],"cache":{"1":{"a":1,"time":1}}})"),
      HasSubstr("no name of a parameter; expected texts such as \"block_size_x\" at place 2"));
  EXPECT_THAT(
      MessageFor(
          R"({"device_name":"d","tune_params_keys":["a","b"],"cache":{"1":{"a":1,"time":1}}})"),
      HasSubstr("no configuration is recorded; 1 configuration is left out: `b` has no "));
  EXPECT_THAT(MessageFor(R"({"tune_params_keys":["a"],"cache":{"1":{"a":1,"time":1},
"\n":{"a":"1","time":2}}})"),
              HasSubstr("configurations `1` and `\\n` choose the same"));
  EXPECT_THAT(MessageFor(R"({"tune_params_keys":["a"],"cache":{}})"),
              HasSubstr("no configuration is recorded"));
  EXPECT_THAT(MessageFor(R"({"tune_params_keys":["a"],"cache":{"1":{"a":1,"time":"x"}}})"),
              HasSubstr("every configuration failed"));
  EXPECT_THAT(MessageFor(Cache(R"(,"3":{"a":3 "time":1})")), HasSubstr("line 3, column"));
  EXPECT_FALSE(ReadRecordedFile(testing::TempDir(), {}).ok());
  EXPECT_THAT(std::string(ReadRecordedFile(kCache, {.workload = "qkv"}).status().message()),
              HasSubstr("is no tuning log"));
}

TEST_F(RecordedFileTest, ReadsAPipe) {
  const std::string text =
      R"({"device_name":"d","tune_params_keys":["a"],"cache":{"1":{"a":1,"time":1}}})";
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  close(ends[1]);
  const absl::StatusOr<RecordedFile> file = ReadRecordedFile(absl::StrCat("/dev/fd/", ends[0]), {});
  close(ends[0]);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->space->Count(), 1);
}

}  // namespace
}  // namespace tilewright
