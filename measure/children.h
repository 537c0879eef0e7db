// The worker's children: the same executable started with a hidden command. A program that is to
// serve as a worker calls these from its main() for the commands `builder` and `runner`; tests do
// so with longer catalogues.
#ifndef TILEWRIGHT_MEASURE_CHILDREN_H_
#define TILEWRIGHT_MEASURE_CHILDREN_H_

#include "codegen/writer.h"

namespace tilewright {

// Reads tasks from file descriptor 3, writes results to it, until it closes. Returns the exit code.
int BuilderMain(const Catalogue& catalogue);
int RunnerMain();

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_CHILDREN_H_
