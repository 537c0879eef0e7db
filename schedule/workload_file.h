// A workload file names the workloads of a model, one per line; tune, jobs submit and build read
// the same file.
//
//   # name [xWEIGHT] what types; without a weight it is 1
//   qkv   x32 linear(t=1..8192 i=4096 o=6144) bf16
//   gate  x32 'C[m,n] = silu(sum(k: A[m,k] * B[k,n]))' m=512 n=1024,k=64 f16,B:e4m3
//
// `what` is an operator with its parameters and sizes in parentheses, or an expression in quotes
// ('…' or "…"). Words after it that contain `=` are sizes, the others types. `#` outside quotes
// starts a comment. docs/formats/workload.md has the grammar.
#ifndef TILEWRIGHT_SCHEDULE_WORKLOAD_FILE_H_
#define TILEWRIGHT_SCHEDULE_WORKLOAD_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "schedule/workload.h"

namespace tilewright {

struct NamedWorkload {
  std::string name;    // a C identifier, unique in the file: the pack's function
  int64_t weight = 1;  // how often a model calls it; at least 1
  // As they stand in the file: what ExpandOperator and Workload::Make were given.
  std::string source;
  std::string sizes;
  std::string types;
  Workload workload;
  Names names;   // the expression's own names
  int line = 0;  // where it stands, counted from 1
};

// `file_name` is for messages: InvalidArgument reads `ops.tw:3: …`.
absl::StatusOr<std::vector<NamedWorkload>> ParseWorkloadFile(std::string_view text,
                                                             std::string_view file_name);
// NotFound: the file can't be opened. Else as above.
absl::StatusOr<std::vector<NamedWorkload>> ReadWorkloadFile(const std::string& path);

}  // namespace tilewright

#endif  // TILEWRIGHT_SCHEDULE_WORKLOAD_FILE_H_
