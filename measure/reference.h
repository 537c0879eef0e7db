// References: what the outputs of each content of BufferSets must be, computed once per session on
// the device by the reference kernel (f64 accumulators, error bounds beside the values) and held
// against the interpreter at seeded points, corners and tails.
#ifndef TILEWRIGHT_MEASURE_REFERENCE_H_
#define TILEWRIGHT_MEASURE_REFERENCE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "measure/buffer_sets.h"
#include "measure/check.h"
#include "measure/kernel_caller.h"
#include "schedule/workload.h"

namespace tilewright {

// One ExpectedOutput per output.
using Expected = std::vector<std::unique_ptr<ExpectedOutput>>;

// Points that each output is compared with the interpreter at, beside corners and tails.
inline constexpr int kInterpretedPoints = 256;

// Computes the references of all contents; result[content][output]. `progress` is called before
// each long step. FailedPrecondition: an error bound is infinite, the program cannot be evaluated
// on these data, or reference and interpreter disagree (the point and both values are named).
absl::StatusOr<std::vector<Expected>> MakeReferences(
    const Workload& workload, const BufferSets& sets, KernelCaller& reference, uint64_t seed,
    LaunchPool& pool, const std::function<void(const std::string&)>& progress);

// What a reference holds of an output's element: value and bound.
using ReadReference = std::function<absl::StatusOr<Expectation>(int output, int64_t number)>;
// Holds a reference against the interpreter at seeded points, corners and tails of every output.
// `inputs`: the parameters that it was made of. FailedPrecondition as MakeReferences.
absl::Status CompareWithInterpreter(const Workload& workload, const Sizes& sizes,
                                    const std::vector<const void*>& inputs, uint64_t seed,
                                    const ReadReference& read);

// The unit roundoff of what the workload's sums accumulate in: the coarsest of its parameters'
// accumulators, 0 for integers.
//
// Tensor cores align the products of 8-bit numbers to the largest of an instruction and keep some
// 13 bits below it (seen on an H200: of 48 kernels of e4m3 with sums of 317 to 1024 terms, each had
// a few of 10^4 elements up to 1.5 times an f32 bound away). Such an error belongs to a product,
// not to the sum so far: beside E = 8 u sqrt(K) sum|term| it is about 8 * 2^-12 * sum|term| /
// sqrt(K), which the roundoff 2^-12 / K comes to.
double AccumulatorRoundoff(const Workload& workload);

// How an output lies in memory at these sizes.
OutputLayout LayoutOfOutput(const Workload& workload, int output, absl::Span<const int64_t> sizes);

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_REFERENCE_H_
