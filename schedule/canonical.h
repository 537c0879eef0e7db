// The canonical form of a program: the least text, in byte order, that renaming and reordering
// reach (docs/formats/workload.md).
//
//   tw1 t2:bf16[i0=1024,i1=4096]=sum(i2=64:t0:bf16[i0,i2]*t1:bf16[i2,i1])
//
// Names are numbered in the order they first appear: indices from i0; tensors from t0, parameters
// before outputs before intermediates. At its first appearance an index carries its size and a
// tensor its type, own sizes and strides.
#ifndef TILEWRIGHT_SCHEDULE_CANONICAL_H_
#define TILEWRIGHT_SCHEDULE_CANONICAL_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "schedule/resolve.h"
#include "schedule/workload.h"

namespace tilewright {

struct CanonicalForm {
  std::string text;
  std::vector<int> tensor_numbers;  // canonical number by number in the given program
  std::vector<int> index_numbers;
};

// `resolved.program` is normalised (normalise.h). InvalidArgument if more than 10,000 writings tie:
// the program has too many interchangeable parts.
absl::StatusOr<CanonicalForm> Canonicalise(const ResolvedProgram& resolved);

// A canonical text taken apart: the expression in canonical names, and what its annotations state.
// The text is only scanned here; parsing the parts finds what else is wrong. InvalidArgument: not
// `tw1 …`.
struct CanonicalParts {
  std::string expression;
  WorkloadOptions options;
};
absl::StatusOr<CanonicalParts> SplitCanonicalText(std::string_view text);

}  // namespace tilewright

#endif  // TILEWRIGHT_SCHEDULE_CANONICAL_H_
