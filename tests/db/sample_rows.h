// Rows that the tests of db/ write: a small world of one target, two workloads, one run and one
// session.
#ifndef TILEWRIGHT_TESTS_DB_SAMPLE_ROWS_H_
#define TILEWRIGHT_TESTS_DB_SAMPLE_ROWS_H_

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "db/database.h"

namespace tilewright {

// A directory of its own for a test's files; removed with the value.
class TestDirectory {
 public:
  TestDirectory() {
    // In memory where that can be had: the tests flush thousands of times.
    const std::filesystem::path memory = "/dev/shm";
    const bool in_memory = access(memory.c_str(), W_OK) == 0;
    std::string name =
        (in_memory ? memory : std::filesystem::temp_directory_path()) / "tilewright_db_XXXXXX";
    path_ = mkdtemp(name.data());
  }
  ~TestDirectory() { std::filesystem::remove_all(path_); }
  std::string File(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline Id SampleId(uint8_t number) {
  Id id;
  id.bytes.fill(number);
  return id;
}

inline constexpr char kMatmulKey[] = "aaaa";
inline constexpr char kSoftmaxKey[] = "bbbb";
inline constexpr char kTargetKey[] = "cccc";
inline constexpr char kRegime[] = "cache=cold chain=plain data=normal";

inline WorkloadRow SampleWorkload() {
  return {kMatmulKey,
          "t2[i0,i1] = sum(i2: t0[i0,i2] * t1[i2,i1])",
          1,
          "qkv",
          "C[m,n] = sum(k: A[m,k] * B[k,n])",
          "m=64 n=64 k=64",
          "f32",
          R"({"tensors":["A","B","C"],"indices":["m","n","k"]})"};
}
inline WorkloadRow SecondWorkload() {
  return {kSoftmaxKey, "t1[i0,i1] = …", 1, "", "softmax(r=64 c=64)", "r=64 c=64", "f32", ""};
}
inline TargetRow SampleTarget() {
  return {kTargetKey, "cpu:test/avx2/2", "cpu:test/avx2/2{backend=host cores=2}"};
}
inline EnvironmentRow SampleEnvironment() {
  return {"uuid-1", "linux 6.1", "1.19.1.none", "steady_clock", "median of 10"};
}

inline RunRow SampleRun() {
  RunRow run;
  run.id = SampleId(1);
  run.target_key = kTargetKey;
  run.regime = kRegime;
  run.seed = 0xffffffffffffffffu;
  run.options_json = R"({"trials":100})";
  run.toolchain = "1.19.1.none";
  run.workloads = {{kMatmulKey, 1, "tiled{a=1}", {"tiled{a=1}", "naive{}"}},
                   {kSoftmaxKey, 2.5, "row{}", {}}};
  run.started_unix_ns = 1000;
  return run;
}

inline SessionRow SampleSession() {
  return {SampleId(2), SampleId(1), SampleEnvironment(), 7, 1500, ""};
}

inline TrialRow SampleTrial(uint8_t number, const std::string& schedule, double seconds) {
  TrialRow trial;
  trial.id = SampleId(number);
  trial.run = SampleId(1);
  trial.workload_key = kMatmulKey;
  trial.target_key = kTargetKey;
  trial.regime = kRegime;
  trial.schedule = schedule;
  trial.seconds = seconds;
  trial.anchor_seconds = 2e-3;
  trial.session = SampleId(2);
  trial.build_ns = 12345;
  trial.ir_digest = "1111";
  trial.binary_digest = "2222";
  trial.resources_json = R"({"spills":0})";
  trial.samples = Samples{{seconds, seconds * 1.01}, {2400, 2395}, {0, Samples::kPowerCapped}};
  trial.created_unix_ns = 2000;
  return trial;
}

inline TrialRow FailedTrial(uint8_t number, const std::string& schedule, const std::string& kind) {
  TrialRow trial = SampleTrial(number, schedule, 1);
  trial.seconds.reset();
  trial.anchor_seconds.reset();
  trial.session.reset();
  trial.samples.reset();
  trial.resources_json.clear();
  trial.failure = Failure{kind, "it said \"no\"\nand stopped"};
  return trial;
}

inline VerdictRow SampleVerdict(uint8_t number, const std::string& winner) {
  VerdictRow verdict;
  verdict.id = SampleId(number);
  verdict.workload_key = kMatmulKey;
  verdict.target_key = kTargetKey;
  verdict.regime = kRegime;
  verdict.winner_schedule = winner;
  verdict.winner_ir_digest = "1111";
  verdict.winner_binary_digest = "2222";
  verdict.rival_schedule = "naive{}";
  verdict.outcome = "faster";
  verdict.ratio = 1.25;
  verdict.ratio_low = 1.2;
  verdict.ratio_high = 1.3;
  verdict.winner_seconds = 1e-3;
  verdict.rival_seconds = 1.25e-3;
  verdict.limit_seconds = 1e-4;
  verdict.environment = SampleEnvironment();
  verdict.check_json = R"({"points":256})";
  verdict.rounds = Rounds{{winner, "naive{}"}, {1e-3, 1.25e-3, 1.01e-3, 1.26e-3}};
  verdict.created_unix_ns = 3000 + number;
  return verdict;
}

// Everything that trials refer to.
inline absl::Status WriteWorld(Database& database) {
  return database.Transaction([&] {
    absl::Status status = database.InsertWorkload(SampleWorkload());
    status.Update(database.InsertWorkload(SecondWorkload()));
    status.Update(database.InsertTarget(SampleTarget()));
    status.Update(database.InsertRun(SampleRun()));
    status.Update(database.InsertSession(SampleSession()));
    return status;
  });
}

inline std::unique_ptr<Database> OpenWorld(const std::string& path) {
  absl::StatusOr<std::unique_ptr<Database>> database =
      Database::OpenWriter(path, {.origin = "test"});
  EXPECT_TRUE(database.ok()) << database.status();
  if (!database.ok()) return nullptr;
  const absl::Status status = WriteWorld(**database);
  EXPECT_TRUE(status.ok()) << status;
  return *std::move(database);
}

}  // namespace tilewright

#endif  // TILEWRIGHT_TESTS_DB_SAMPLE_ROWS_H_
