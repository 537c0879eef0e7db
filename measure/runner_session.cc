#include "measure/runner_session.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "measure/inputs.h"
#include "measure/reference.h"

namespace tilewright {
namespace {

constexpr double kCheapOperations = 5e8;
constexpr int64_t kCheapElements = 1 << 20;
constexpr int kSeededShapes = 3;

}  // namespace

void SetFailure(const CandidateFailure& failure, v1::Failure* out) {
  out->set_kind(std::string(Info(failure.kind).name));
  out->set_text(failure.text);
}

absl::StatusOr<Kernel> ParseBuiltKernel(const v1::BuiltKernel& built) {
  absl::StatusOr<Kernel> kernel = ParseRecipe(built.recipe_json());
  if (!kernel.ok()) return kernel;
  if (kernel->objects.size() != static_cast<size_t>(built.objects_size())) {
    return absl::InvalidArgumentError(absl::StrCat("the recipe names ", kernel->objects.size(),
                                                   " objects, the message holds ",
                                                   built.objects_size()));
  }
  for (size_t i = 0; i < kernel->objects.size(); ++i) kernel->objects[i].bytes = built.objects(i);
  return kernel;
}

std::vector<Sizes> ChooseExtraShapes(const Workload& workload, const Sizes& at, uint64_t seed) {
  std::vector<Sizes> shapes;
  if (!workload.has_range()) return shapes;
  const auto add = [&](const Sizes& sizes) {
    if (sizes != at && std::find(shapes.begin(), shapes.end(), sizes) == shapes.end()) {
      shapes.push_back(sizes);
    }
  };
  add(workload.LowestSizes());
  for (int shape = 0; shape < kSeededShapes; ++shape) {
    Sizes sizes;
    for (size_t i = 0; i < workload.sizes().size(); ++i) {
      const SizeRange range = workload.sizes()[i];
      const double u = static_cast<double>(MixBits(seed + 64 * shape + i) >> 11) * 0x1p-53;
      const double low = std::log(static_cast<double>(range.low));
      const double high = std::log(static_cast<double>(range.high) + 1);
      const auto size = static_cast<int64_t>(std::exp(low + u * (high - low)));
      sizes.push_back(std::clamp(size, range.low, range.high));
    }
    add(sizes);
  }
  return shapes;
}

int ChooseContents(const Workload& workload, const Sizes& at) {
  int64_t elements = 0;
  for (size_t o = 0; o < workload.outputs().size(); ++o) {
    elements += LayoutOfOutput(workload, static_cast<int>(o), at).elements();
  }
  const bool cheap = workload.Operations(at) < kCheapOperations && elements < kCheapElements;
  return cheap ? 4 : 2;
}

std::optional<CandidateFailure> CheckTime(double seconds, double limit_seconds) {
  if (seconds >= limit_seconds) return std::nullopt;
  return CandidateFailure{
      FailureKind::kImpossibleTime,
      absl::StrFormat("%.4g us a call is below the physical limit of %.4g us: not all of the work "
                      "was done",
                      seconds * 1e6, limit_seconds * 1e6)};
}

}  // namespace tilewright
