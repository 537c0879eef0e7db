// How long models take to train and to score, on one thread, for synthetic rows of 60 features with
// a quarter of them missing.
//
// The bar: <= 50 ms to train on 1000 rows, <= 10 ms to score 4000. Between them lies what a tuner
// does while a GPU measures.
#include <benchmark/benchmark.h>

#include <random>

#include "costmodel/model.h"

namespace tilewright {
namespace {

constexpr int kFeatures = 60;

std::vector<TrainingRow> Rows(int count) {
  std::mt19937_64 random(1);
  std::vector<TrainingRow> rows(count);
  for (TrainingRow& row : rows) {
    double cost = 1;
    for (int i = 0; i < kFeatures; ++i) {
      const bool missing = random() % 4 == 0;
      const float x = static_cast<float>(random() % 12);
      row.features.push_back(missing ? kMissingFeature : x);
      if (i < 8 && !missing) cost += 0.05 * x * (i + 1);
    }
    row.group = random() % 3 == 0 ? "a" : "b";
    if (random() % 8 != 0) row.cost = cost;
  }
  return rows;
}

std::vector<FeatureRow> Features(int count) {
  std::vector<FeatureRow> features;
  for (TrainingRow& row : Rows(count)) features.push_back(std::move(row.features));
  return features;
}

void BM_Train(benchmark::State& state, const char* name) {
  const std::vector<TrainingRow> rows = Rows(static_cast<int>(state.range(0)));
  const std::unique_ptr<Model> model = (*FindModel(name))->make();
  for (auto _ : state) {
    if (!model->Train(rows).ok()) state.SkipWithError("training failed");
  }
}
BENCHMARK_CAPTURE(BM_Train, xgboost, "xgboost")
    ->Arg(100)
    ->Arg(1000)
    ->Arg(2000)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Train, xgboost_regression, "xgboost_regression")
    ->Arg(100)
    ->Arg(1000)
    ->Arg(2000)
    ->Unit(benchmark::kMillisecond);

void BM_Score(benchmark::State& state, const char* name) {
  const std::unique_ptr<Model> model = (*FindModel(name))->make();
  if (!model->Train(Rows(1000)).ok()) state.SkipWithError("training failed");
  const std::vector<FeatureRow> features = Features(static_cast<int>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(model->Score(features));
}
BENCHMARK_CAPTURE(BM_Score, xgboost, "xgboost")->Arg(4000)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Score, xgboost_regression, "xgboost_regression")
    ->Arg(4000)
    ->Unit(benchmark::kMillisecond);

void BM_TrainValidity(benchmark::State& state) {
  const std::vector<TrainingRow> rows = Rows(1000);
  const std::unique_ptr<ValidityModel> model = NewValidityModel();
  for (auto _ : state) {
    if (!model->Train(rows).ok()) state.SkipWithError("training failed");
  }
}
BENCHMARK(BM_TrainValidity)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tilewright
