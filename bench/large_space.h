// A space of 10^12 schedules, for what has to work in one.
//
// It is shaped like a Hopper GEMM's: 15 decisions, of which four are absent under some
// choices, and constraints that couple up to six of them through combinations (the numbers of an
// H200: 232448 B of shared memory for one CTA, 168 or 240 registers of a consumer thread, 132 SMs).
#ifndef TILEWRIGHT_BENCH_LARGE_SPACE_H_
#define TILEWRIGHT_BENCH_LARGE_SPACE_H_

#include "schedule/space.h"

namespace tilewright {

SpaceDefinition HopperGemm();

}  // namespace tilewright

#endif  // TILEWRIGHT_BENCH_LARGE_SPACE_H_
