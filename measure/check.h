// The output check (DESIGN.md 6): is an output what the expression says, within what its arithmetic
// may lose?
//
//   |out - round(ref)| <= 2 E + u_out |ref| + the smallest subnormal of the output's type
//
// where ref and its absolute error bound E come from the reference kernel. NaN equals NaN and an
// infinity the same infinity; where |ref| +- 2 E straddles the type's overflow threshold, infinity
// (NaN in a type without one) and the finite value are both right. Integers are equal, or within
// max(1, 2 E) where the reference is not an exact integer. An element with infinite E cannot be
// checked and is refused.
//
// An ExpectedOutput is made once per session and compared with many outputs: it keeps the rounded
// reference and the allowance in the narrowest type that holds them, so that a comparison is one
// pass at memory speed.
#ifndef TILEWRIGHT_MEASURE_CHECK_H_
#define TILEWRIGHT_MEASURE_CHECK_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "measure/launch_pool.h"
#include "schedule/element_type.h"

namespace tilewright {

// Where an output's elements lie.
struct OutputLayout {
  std::string name;  // "C", for messages
  ElementType type = ElementType::kF32;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;  // in elements
  int64_t buffer_elements = 0;   // from the first to the last addressed
  bool Dense() const;            // row-major without gaps
  int64_t elements() const;
  int64_t Offset(int64_t number) const;         // of the element with this row-major number
  std::string PointText(int64_t number) const;  // "C[3,17]"
};

// The right answer for one element.
struct Expectation {
  double reference;
  double bound;
};
// What DESIGN.md says of one element, in double. `ratio`, if not null, receives |out - round(ref)|
// / allowance where that is finite.
bool ElementPasses(ElementType type, double out, Expectation expected, double* ratio = nullptr);
// The allowance of an element whose rounded reference is finite.
double Allowance(ElementType type, Expectation expected);

struct CheckResult {
  int64_t elements = 0;
  int64_t wrong = 0;
  int64_t first_wrong = -1;  // row-major number
  double worst_ratio = 0;    // largest error over allowance among those that pass
  std::string text;          // of the first wrong element; empty if none is
};

class ExpectedOutput {
 public:
  // `reference` and `bound` are dense row-major. FailedPrecondition: an element's bound is infinite
  // or NaN (its point is named).
  static absl::StatusOr<std::unique_ptr<ExpectedOutput>> Make(OutputLayout layout,
                                                              absl::Span<const double> reference,
                                                              absl::Span<const double> bound);
  virtual ~ExpectedOutput() = default;
  virtual const OutputLayout& layout() const = 0;
  // Compares the buffer at `data`; the work is shared by the pool's threads.
  virtual CheckResult Check(const void* data, LaunchPool& pool) const = 0;
};

// Bytes beside an output's elements (gaps between rows) must keep the poison: the offset in bytes
// of the first that does not, or -1. Dense layouts have none.
int64_t FindGapDamage(const OutputLayout& layout, const void* data, unsigned char poison);

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_CHECK_H_
