#include "costmodel/booster.h"

#include <xgboost/c_api.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace tilewright {
namespace {

constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();
constexpr int kThreads = 1;

absl::Status Failed(const char* what) {
  std::string message = XGBGetLastError();
  std::replace(message.begin(), message.end(), '\n', ' ');
  return absl::InternalError(absl::StrCat("XGBoost could not ", what, ": ", message));
}

struct FreeMatrix {
  void operator()(void* handle) const { XGDMatrixFree(handle); }
};
struct FreeBooster {
  void operator()(void* handle) const { XGBoosterFree(handle); }
};

absl::Status CheckInput(const DenseMatrix& matrix, absl::Span<const float> labels,
                        absl::Span<const unsigned> groups) {
  const size_t rows = matrix.rows();
  if (rows == 0)
    return absl::InvalidArgumentError("training needs at least one row and one column");
  if (labels.size() != rows) {
    return absl::InvalidArgumentError(
        absl::StrCat("training has ", rows, " rows but ", labels.size(), " labels"));
  }
  const size_t grouped = std::accumulate(groups.begin(), groups.end(), size_t{0});
  if (!groups.empty() && grouped != rows) {
    return absl::InvalidArgumentError(
        absl::StrCat("training has ", rows, " rows but ", grouped, " in groups"));
  }
  for (size_t i = 0; i < matrix.values.size(); ++i) {
    if (std::isinf(matrix.values[i])) {
      return absl::InvalidArgumentError(absl::StrCat("training row ", i / matrix.columns,
                                                     ", feature ", i % matrix.columns,
                                                     " is infinite; missing is NaN"));
    }
  }
  for (size_t i = 0; i < labels.size(); ++i) {
    if (!std::isfinite(labels[i])) {
      return absl::InvalidArgumentError(
          absl::StrCat("label of training row ", i, " is not finite"));
    }
  }
  return absl::OkStatus();
}

// The same rows with another number of columns; new ones are missing.
void Resize(DenseMatrix& matrix, int columns) {
  if (matrix.columns == columns) return;
  DenseMatrix resized{columns, {}};
  resized.values.reserve(static_cast<size_t>(matrix.rows()) * columns);
  const int kept = std::min(columns, matrix.columns);
  for (int i = 0; i < matrix.rows(); ++i) {
    const float* row = &matrix.values[static_cast<size_t>(i) * matrix.columns];
    resized.values.insert(resized.values.end(), row, row + kept);
    resized.values.insert(resized.values.end(), columns - kept, kMissing);
  }
  matrix = std::move(resized);
}

class XgboostBooster : public Booster {
 public:
  XgboostBooster(BoosterHandle handle, int columns) : handle_(handle), columns_(columns) {}

  absl::StatusOr<std::vector<float>> Predict(DenseMatrix matrix) const override {
    const int rows = matrix.rows();
    if (rows == 0) return std::vector<float>();
    Resize(matrix, columns_);
    // The address of the values goes into a description in NumPy's array interface.
    const std::string array = absl::StrCat(
        "{\"data\":[", reinterpret_cast<uintptr_t>(matrix.values.data()), ",true],\"shape\":[",
        rows, ",", columns_, "],\"typestr\":\"<f4\",\"version\":3}");
    constexpr char kConfig[] =
        "{\"type\":0,\"training\":false,\"iteration_begin\":0,\"iteration_end\":0,"
        "\"strict_shape\":false,\"cache_id\":0,\"missing\":NaN}";
    const bst_ulong* shape = nullptr;
    bst_ulong dimensions = 0;
    const float* result = nullptr;
    // 1.7.4 takes a null proxy matrix only: one made by XGProxyDMatrixCreate is refused.
    if (XGBoosterPredictFromDense(handle_.get(), array.c_str(), kConfig, nullptr, &shape,
                                  &dimensions, &result) != 0) {
      return Failed("predict");
    }
    if (dimensions != 1 || shape[0] != static_cast<bst_ulong>(rows)) {
      return absl::InternalError("XGBoost predicted something other than one number per row");
    }
    return std::vector<float>(result, result + rows);
  }

 private:
  const std::unique_ptr<void, FreeBooster> handle_;
  const int columns_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Booster>> Booster::Train(const DenseMatrix& matrix,
                                                        absl::Span<const float> labels,
                                                        absl::Span<const unsigned> groups,
                                                        const BoosterOptions& options) {
  absl::Status checked = CheckInput(matrix, labels, groups);
  if (!checked.ok()) return checked;
  DMatrixHandle data = nullptr;
  if (XGDMatrixCreateFromMat_omp(matrix.values.data(), matrix.rows(), matrix.columns, kMissing,
                                 &data, kThreads) != 0) {
    return Failed("read the training rows");
  }
  const std::unique_ptr<void, FreeMatrix> owned(data);
  if (XGDMatrixSetFloatInfo(data, "label", labels.data(), labels.size()) != 0) {
    return Failed("read the labels");
  }
  if (!groups.empty() && XGDMatrixSetUIntInfo(data, "group", groups.data(), groups.size()) != 0) {
    return Failed("read the groups");
  }
  BoosterHandle handle = nullptr;
  if (XGBoosterCreate(&data, 1, &handle) != 0) return Failed("make a model");
  auto booster = std::make_unique<XgboostBooster>(handle, matrix.columns);
  std::vector<std::pair<std::string, std::string>> parameters = options.parameters;
  parameters.insert(parameters.end(), {{"nthread", absl::StrCat(kThreads)},
                                       {"seed", "1"},
                                       {"verbosity", "0"},
                                       {"disable_default_eval_metric", "1"}});
  for (const auto& [name, value] : parameters) {
    if (XGBoosterSetParam(handle, name.c_str(), value.c_str()) != 0) {
      return Failed("accept a parameter");
    }
  }
  for (int round = 0; round < options.rounds; ++round) {
    if (XGBoosterUpdateOneIter(handle, round, data) != 0) return Failed("train");
  }
  return booster;
}

}  // namespace tilewright
