#include "tests/agreement/check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "schedule/interpreter.h"
#include "tests/agreement/random_program.h"
#include "tests/codegen/host_loader.h"

namespace tilewright {
namespace {

constexpr size_t kGuardBytes = 256;
constexpr unsigned char kGuard = 0xa5;

// Row-major positions of a shape as points.
std::vector<std::vector<int64_t>> AllPoints(const std::vector<int64_t>& shape) {
  std::vector<std::vector<int64_t>> points = {{}};
  for (int64_t size : shape) {
    std::vector<std::vector<int64_t>> longer;
    for (const auto& point : points) {
      for (int64_t i = 0; i < size; ++i) {
        longer.push_back(point);
        longer.back().push_back(i);
      }
    }
    points = std::move(longer);
  }
  return points;
}

}  // namespace

double AccumulatorRoundoff(const Workload& workload) {
  for (int tensor : workload.parameters()) {
    if (Info(workload.layout(tensor).type).accumulator == ElementType::kF32)
      return Info(ElementType::kF32).unit_roundoff;
  }
  return Info(ElementType::kF64).unit_roundoff;
}

bool IsWithinBound(ElementType type, double out, double reference, double bound) {
  if (!(bound < INFINITY)) return false;
  const ElementTypeInfo& info = Info(type);
  const double rounded = RoundTo(type, reference);
  if (!info.is_float) {
    // One off after a rounding that an error may have moved.
    return std::abs(out - rounded) <= (bound == 0 ? 0 : 1 + 2 * bound);
  }
  const double least = std::abs(reference) - 2 * bound;
  const double most = std::abs(reference) + 2 * bound;
  const bool straddles = std::isfinite(RoundTo(type, least)) && !std::isfinite(RoundTo(type, most));
  if (straddles && (!std::isfinite(out) || std::abs(out) >= RoundTo(type, least))) return true;
  if (std::isnan(rounded) || std::isnan(out)) return std::isnan(rounded) && std::isnan(out);
  if (std::isinf(rounded) || std::isinf(out)) return rounded == out;
  // Both sides of a tie are right: there the distance to round(ref) is two roundoffs, to ref one.
  const double distance = std::min(std::abs(out - rounded), std::abs(out - reference));
  return distance <= 2 * bound + info.unit_roundoff * std::abs(reference) + info.smallest_subnormal;
}

Expected MakeExpected(const Workload& workload, const Target& target, const Sizes& sizes,
                      uint64_t seed) {
  Expected expected;
  expected.sizes = sizes;
  expected.inputs = RandomInputs(workload, sizes, seed);
  std::vector<const void*> inputs;
  std::vector<void*> buffers;
  for (auto& input : expected.inputs) {
    inputs.push_back(input.data());
    buffers.push_back(input.data());
  }
  auto interpreter = Interpreter::Make(workload, sizes, inputs);
  EXPECT_TRUE(interpreter.ok()) << interpreter.status();
  std::vector<std::vector<double>> computed;
  for (int tensor : workload.outputs()) {
    std::vector<double> values;
    for (const auto& point : AllPoints(workload.Shape(tensor, sizes))) {
      auto value = (*interpreter)->Evaluate(tensor, point);
      EXPECT_TRUE(value.ok()) << value.status();
      values.push_back(value.ok() ? *value : 0);
    }
    computed.emplace_back(values.size(), -1);
    expected.bounds.emplace_back(values.size(), -1);
    expected.values.push_back(std::move(values));
  }
  for (size_t i = 0; i < computed.size(); ++i) {
    buffers.push_back(computed[i].data());
    buffers.push_back(expected.bounds[i].data());
  }
  auto kernel = WriteReferenceKernel(workload, target, AccumulatorRoundoff(workload), 2);
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  auto loaded = LoadedKernel::Load(*kernel);
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  (*loaded)->Run(buffers, sizes);
  for (size_t i = 0; i < computed.size(); ++i) {
    for (size_t p = 0; p < computed[i].size(); ++p) {
      const double exact = expected.values[i][p];
      const double value = computed[i][p];
      const double bound = expected.bounds[i][p];
      EXPECT_GE(bound, 0);
      const bool same = value == exact || (std::isnan(value) && std::isnan(exact));
      const bool close = std::abs(value - exact) <= bound + 1e-12 * std::abs(exact);
      EXPECT_TRUE(same || close) << workload.canonical_text() << "\noutput " << i << " position "
                                 << p << ": reference kernel " << value << ", interpreter " << exact
                                 << ", bound " << bound;
      if (!same && !close) return expected;
    }
  }
  return expected;
}

std::string Disagreement(const Workload& workload, const Kernel& kernel, const Expected& expected) {
  auto loaded = LoadedKernel::Load(kernel);
  if (!loaded.ok()) return std::string(loaded.status().message());
  return Disagreement(workload, **loaded, expected, LoadedKernel::Order::kAtOnce);
}

std::string Disagreement(const Workload& workload, LoadedKernel& kernel, const Expected& expected,
                         LoadedKernel::Order order) {
  std::vector<std::vector<char>> inputs = expected.inputs;
  std::vector<std::vector<char>> outputs;
  std::vector<void*> buffers;
  for (auto& input : inputs) buffers.push_back(input.data());
  for (int tensor : workload.outputs()) {
    outputs.emplace_back(workload.BufferBytes(tensor, expected.sizes) + 2 * kGuardBytes,
                         static_cast<char>(kGuard));
  }
  for (auto& output : outputs) buffers.push_back(output.data() + kGuardBytes);
  kernel.Run(buffers, expected.sizes, order);
  if (inputs != expected.inputs) return "an input was modified";
  for (size_t i = 0; i < outputs.size(); ++i) {
    for (size_t g = 0; g < kGuardBytes; ++g) {
      const bool intact =
          static_cast<unsigned char>(outputs[i][g]) == kGuard &&
          static_cast<unsigned char>(outputs[i][outputs[i].size() - 1 - g]) == kGuard;
      if (!intact) return absl::StrCat("output ", i, " was written out of bounds");
    }
    const int tensor = workload.outputs()[i];
    const ElementType type = workload.layout(tensor).type;
    const std::vector<int64_t> strides = workload.Strides(tensor, expected.sizes);
    const auto points = AllPoints(workload.Shape(tensor, expected.sizes));
    for (size_t p = 0; p < points.size(); ++p) {
      int64_t offset = 0;
      for (size_t d = 0; d < strides.size(); ++d) offset += points[p][d] * strides[d];
      const double out =
          LoadElement(type, outputs[i].data() + kGuardBytes + offset * Info(type).bytes);
      if (IsWithinBound(type, out, expected.values[i][p], expected.bounds[i][p])) continue;
      return absl::StrCat("output ", i, " at [", absl::StrJoin(points[p], ","), "]: ", out,
                          ", expected ", expected.values[i][p], " within ", expected.bounds[i][p],
                          " in ", std::string(Info(type).name));
    }
  }
  return "";
}

}  // namespace tilewright
