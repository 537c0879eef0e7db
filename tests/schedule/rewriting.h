// Rewrites of programs that must not change the canonical text: renaming, and reordering where the
// order is free.
#ifndef TILEWRIGHT_TESTS_SCHEDULE_REWRITING_H_
#define TILEWRIGHT_TESTS_SCHEDULE_REWRITING_H_

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "schedule/expression.h"
#include "schedule/workload.h"

namespace tilewright {

// Picks one of n possibilities, 0 … n-1.
using Pick = std::function<int(int n)>;

Pick RandomPick(std::mt19937_64& random);

// Every sequence of picks, one after another:  do { Use(all.pick()); } while (all.Next());
class ExhaustivePick {
 public:
  Pick pick();
  bool Next();

 private:
  std::vector<std::pair<int, int>> digits_;  // (picked, of how many)
  size_t at_ = 0;
};

// Reorders operands of + * min max, reduction indices, terms of subscripts and independent
// statements.
Program Reorder(const Program& program, const Pick& pick);

struct Rewritten {
  std::string expression;
  WorkloadOptions options;
};
// The program with other names, the options with those names too. Words of the options are
// shuffled.
Rewritten Rename(const Program& program, const WorkloadOptions& options, std::mt19937_64& random);

// A program of section 3 of the design, or near one; with small sizes.
struct Example {
  std::string name;
  std::string expression;
  WorkloadOptions options;
};
const std::vector<Example>& Examples();

// Seeded small programs, legal with the options given.
Example RandomExample(std::mt19937_64& random);

}  // namespace tilewright

#endif  // TILEWRIGHT_TESTS_SCHEDULE_REWRITING_H_
