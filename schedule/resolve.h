// Gives a program the sizes, types and strides a caller states beside it, and checks that they fit
// together.
#ifndef TILEWRIGHT_SCHEDULE_RESOLVE_H_
#define TILEWRIGHT_SCHEDULE_RESOLVE_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "schedule/expression.h"
#include "schedule/workload.h"

namespace tilewright {

// No tensor has more elements, and no size or stride is larger: sums and products of bytes then fit
// in 64 bits.
inline constexpr int64_t kMaxElements = int64_t{1} << 48;

// A word of a list whose separators are spaces and commas.
struct ListWord {
  std::string_view text;
  int offset = 0;  // bytes from the list's start
};
std::vector<ListWord> SplitList(std::string_view list);

// `1024` or `1..8192`. InvalidArgument (not located) says what is accepted.
absl::StatusOr<SizeRange> ParseSizeRange(std::string_view text);

struct ResolvedProgram {
  Program program;
  std::vector<SizeRange> sizes;       // by index
  std::vector<TensorLayout> layouts;  // by tensor
};

// `source` is the text that `program` was parsed from. InvalidArgument is located in the
// expression, the sizes or the types.
absl::StatusOr<ResolvedProgram> Resolve(Program program, std::string_view source,
                                        const WorkloadOptions& options);

// The strides of a dense row-major tensor of this shape.
std::vector<int64_t> DenseStrides(const std::vector<int64_t>& shape);

}  // namespace tilewright

#endif  // TILEWRIGHT_SCHEDULE_RESOLVE_H_
