#include "measure/reference.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "measure/inputs.h"
#include "schedule/interpreter.h"
#include "schedule/match.h"

namespace tilewright {
namespace {

// The dense f64 results of the reference kernel on one set: values and bounds by output.
struct RawReference {
  std::vector<std::vector<double>> values;
  std::vector<std::vector<double>> bounds;
};

absl::StatusOr<RawReference> RunReference(const Workload& workload, const BufferSets& sets, int set,
                                          KernelCaller& reference) {
  RawReference raw;
  BufferTable buffers;
  for (const void* input : sets.Inputs(set)) buffers.push_back(const_cast<void*>(input));
  const int outputs = static_cast<int>(workload.outputs().size());
  raw.values.resize(outputs);
  raw.bounds.resize(outputs);
  for (int o = 0; o < outputs; ++o) {
    const int64_t elements = LayoutOfOutput(workload, o, sets.sizes()).elements();
    // NaN bounds are refused later: an element the reference does not write cannot pass for
    // checked.
    raw.values[o].assign(elements, std::nan(""));
    raw.bounds[o].assign(elements, std::nan(""));
    buffers.push_back(raw.values[o].data());
    buffers.push_back(raw.bounds[o].data());
  }
  if (absl::Status status = reference.Bind(sets.sizes(), {buffers}); !status.ok()) return status;
  reference.Call(0);
  return raw;
}

// Row-major numbers of the elements to interpret: random ones, all corners (up to 2^6), and the
// last element along each dimension at random places of the others.
std::set<int64_t> ChoosePoints(const std::vector<int64_t>& shape, uint64_t seed) {
  std::set<int64_t> points;
  const auto number = [&](const std::vector<int64_t>& point) {
    int64_t result = 0;
    for (size_t d = 0; d < shape.size(); ++d) result = result * shape[d] + point[d];
    return result;
  };
  uint64_t counter = 0;
  const auto random_point = [&] {
    std::vector<int64_t> point;
    for (int64_t size : shape) {
      point.push_back(
          static_cast<int64_t>(MixBits(seed + ++counter) % static_cast<uint64_t>(size)));
    }
    return point;
  };
  for (int i = 0; i < kInterpretedPoints; ++i) points.insert(number(random_point()));
  const size_t corner_dimensions = std::min<size_t>(shape.size(), 6);
  for (uint64_t corner = 0; corner < (uint64_t{1} << corner_dimensions); ++corner) {
    std::vector<int64_t> point(shape.size(), 0);
    for (size_t d = 0; d < corner_dimensions; ++d) {
      if (corner >> d & 1) point[d] = shape[d] - 1;
    }
    points.insert(number(point));
  }
  for (size_t d = 0; d < shape.size(); ++d) {
    for (int i = 0; i < 8; ++i) {
      std::vector<int64_t> point = random_point();
      point[d] = shape[d] - 1;
      points.insert(number(point));
    }
  }
  return points;
}

bool Agree(double reference, double bound, double interpreted) {
  if (std::isnan(reference) || std::isnan(interpreted)) {
    return std::isnan(reference) && std::isnan(interpreted);
  }
  if (std::isinf(reference) || std::isinf(interpreted)) return reference == interpreted;
  return std::fabs(reference - interpreted) <=
         bound + 1e-11 * std::max(std::fabs(reference), std::fabs(interpreted)) + 1e-300;
}

}  // namespace

absl::Status CompareWithInterpreter(const Workload& workload, const Sizes& sizes,
                                    const std::vector<const void*>& inputs, uint64_t seed,
                                    const ReadReference& read) {
  absl::StatusOr<std::unique_ptr<Interpreter>> interpreter =
      Interpreter::Make(workload, sizes, inputs);
  if (!interpreter.ok()) return interpreter.status();
  for (size_t o = 0; o < workload.outputs().size(); ++o) {
    const OutputLayout layout = LayoutOfOutput(workload, static_cast<int>(o), sizes);
    for (int64_t number : ChoosePoints(layout.shape, seed + o)) {
      std::vector<int64_t> point(layout.shape.size());
      int64_t rest = number;
      for (size_t d = point.size(); d-- > 0; rest /= layout.shape[d]) {
        point[d] = rest % layout.shape[d];
      }
      const absl::StatusOr<double> value = (*interpreter)->Evaluate(workload.outputs()[o], point);
      if (!value.ok()) {
        return absl::FailedPreconditionError(absl::StrCat("the program cannot be evaluated at ",
                                                          layout.PointText(number), ": ",
                                                          value.status().message()));
      }
      const absl::StatusOr<Expectation> element = read(static_cast<int>(o), number);
      if (!element.ok()) return element.status();
      if (!Agree(element->reference, element->bound, *value)) {
        return absl::FailedPreconditionError(absl::StrFormat(
            "the reference kernel and the interpreter disagree at %s: %.17g (error bound %.3g) "
            "and %.17g",
            layout.PointText(number), element->reference, element->bound, *value));
      }
    }
  }
  return absl::OkStatus();
}

OutputLayout LayoutOfOutput(const Workload& workload, int output, absl::Span<const int64_t> sizes) {
  const int tensor = workload.outputs()[output];
  OutputLayout layout;
  layout.name = workload.program().tensors[tensor].name;
  layout.type = workload.layout(tensor).type;
  layout.shape = workload.Shape(tensor, sizes);
  layout.strides = workload.Strides(tensor, sizes);
  layout.buffer_elements = workload.BufferElements(tensor, sizes);
  return layout;
}

absl::StatusOr<std::vector<Expected>> MakeReferences(
    const Workload& workload, const BufferSets& sets, KernelCaller& reference, uint64_t seed,
    LaunchPool& pool, const std::function<void(const std::string&)>& progress) {
  std::vector<Expected> references;
  for (int content = 0; content < sets.contents(); ++content) {
    progress(absl::StrCat("reference ", content + 1, " of ", sets.contents()));
    absl::StatusOr<RawReference> raw = RunReference(workload, sets, content, reference);
    if (!raw.ok()) return raw.status();
    if (content == 0) {
      progress("comparing the reference with the interpreter");
      absl::Status status = CompareWithInterpreter(
          workload, sets.sizes(), sets.Inputs(content), seed,
          [&](int output, int64_t number) -> absl::StatusOr<Expectation> {
            return Expectation{raw->values[output][number], raw->bounds[output][number]};
          });
      if (!status.ok()) return status;
    }
    progress("keeping the reference");
    Expected expected;
    for (size_t o = 0; o < workload.outputs().size(); ++o) {
      absl::StatusOr<std::unique_ptr<ExpectedOutput>> output =
          ExpectedOutput::Make(LayoutOfOutput(workload, static_cast<int>(o), sets.sizes()),
                               raw->values[o], raw->bounds[o]);
      if (!output.ok()) return output.status();
      expected.push_back(*std::move(output));
    }
    references.push_back(std::move(expected));
  }
  return references;
}

double AccumulatorRoundoff(const Workload& workload) {
  double roundoff = 0;
  if (const absl::StatusOr<Contraction> match = MatchContraction(workload); match.ok()) {
    const bool eight_bits =
        std::any_of(workload.parameters().begin(), workload.parameters().end(), [&](int tensor) {
          const ElementTypeInfo& type = Info(workload.layout(tensor).type);
          return type.is_float && type.bytes == 1;
        });
    const auto terms = static_cast<double>(match->K(workload.LowestSizes()));
    if (eight_bits) roundoff = std::ldexp(1.0, -12) / std::max(terms, 1.0);
  }
  for (int tensor : workload.parameters()) {
    const ElementType accumulator = Info(workload.layout(tensor).type).accumulator;
    roundoff = std::max(roundoff, Info(accumulator).unit_roundoff);
  }
  return roundoff;
}

}  // namespace tilewright
