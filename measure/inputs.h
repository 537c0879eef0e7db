// Input data: seeded, normally distributed, the same on every machine and whatever the number of
// threads. An element depends only on (seed, stream, position).
//
// Values change a kernel's power and, through denormals and branches, its speed; so data is part of
// the regime (`data=normal`).
#ifndef TILEWRIGHT_MEASURE_INPUTS_H_
#define TILEWRIGHT_MEASURE_INPUTS_H_

#include <cstdint>

#include "schedule/element_type.h"

namespace tilewright {

// Fills elements [begin, end) of an array of `type` at `data`. Floating types get mean 0 and
// variance 1; integers get the normal value times 16 (i8) or 64 (i32), rounded, so that products of
// i8 fill an i32 sum without overflowing it. `stream` tells arrays apart: one number per (set
// content, parameter).
void FillNormal(ElementType type, uint64_t seed, uint64_t stream, int64_t begin, int64_t end,
                void* data);

// A stateless 64-bit mix (the finaliser of SplitMix64; Steele, Lea and Flood, OOPSLA 2014).
uint64_t MixBits(uint64_t x);

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_INPUTS_H_
