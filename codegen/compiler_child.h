// Runs a compiler as a child process under a deadline, with its input and its output in memory.
//
// The child stays in the caller's process group: whoever ends that group (a builder past its own
// deadline, Ctrl-C) ends it too.
#ifndef TILEWRIGHT_CODEGEN_COMPILER_CHILD_H_
#define TILEWRIGHT_CODEGEN_COMPILER_CHILD_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tilewright {

struct CompilerRun {
  int exit_code = 0;
  std::string log;     // what it wrote to standard output and error, at most 1 MiB
  std::string output;  // the bytes of the output file
};

// Where a child finds its input and puts its output: arguments may name these paths.
inline constexpr char kCompilerInputPath[] = "/proc/self/fd/3";
inline constexpr char kCompilerOutputPath[] = "/proc/self/fd/4";

// Thread-safe. DeadlineExceeded: it was killed at the deadline. Internal: it could not be started,
// or a signal ended it.
absl::StatusOr<CompilerRun> RunCompiler(const std::string& program,
                                        const std::vector<std::string>& arguments,
                                        const std::string& input, absl::Duration deadline);

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_COMPILER_CHILD_H_
