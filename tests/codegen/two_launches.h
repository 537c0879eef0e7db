// A variant and its writer that exist for tests of what happens after codegen: Y[i] = X[i] + 6 in
// two launches of three and two threads over a workspace that must be zeroed. Launch 0 adds thread
// + 1 to slot `thread` of the workspace; launch 1 adds the slots' sum to every element. A missing
// barrier, a workspace that was not cleared or a thread that ran twice shows in Y.
#ifndef TILEWRIGHT_TESTS_CODEGEN_TWO_LAUNCHES_H_
#define TILEWRIGHT_TESTS_CODEGEN_TWO_LAUNCHES_H_

#include "codegen/writer.h"

namespace tilewright {

// Workloads: `Y[i] = X[i] + 6` in f32. One decision, `unroll` (1, 2), which changes the IR.
Catalogue TwoLaunchesCatalogue();
// A CPU of two cores that every machine these tests meet can stand in for: x86-64-v3 (2013).
Target TwoLaunchesTarget();

}  // namespace tilewright

#endif  // TILEWRIGHT_TESTS_CODEGEN_TWO_LAUNCHES_H_
