// A zoo of kernels that are wrong in one way each, and one that is right: what output checks, guard
// bands and the runner's supervisor must catch. They are the values of the decision `fault` of the
// variant `zoo.matmul`, which writes any f32 matrix product C[m,n] = sum(k: A[m,k] * B[k,n]) on two
// threads.
//
//   zoo.matmul{fault=drop_term}
//
// A program that serves them is a worker's executable with ZooCatalogue()
// (tests/measure/zoo_worker_main.cc).
#ifndef TILEWRIGHT_TESTS_FAKES_ZOO_H_
#define TILEWRIGHT_TESTS_FAKES_ZOO_H_

#include <string>
#include <vector>

#include "codegen/writer.h"
#include "measure/failure.h"
#include "schedule/schedule.h"

namespace tilewright {

struct ZooAnimal {
  std::string fault;                  // the decision's token
  std::vector<FailureKind> accepted;  // how it may be caught; empty: it is right
  bool at_build = false;              // caught by Workbench::Build
};
const std::vector<ZooAnimal>& ZooAnimals();

// The project's variants and writers, and the zoo's.
absl::Span<const Variant> ZooVariants();
absl::Span<const Writer> ZooWriters();
Catalogue ZooCatalogue();

Schedule ZooSchedule(const std::string& fault);

}  // namespace tilewright

#endif  // TILEWRIGHT_TESTS_FAKES_ZOO_H_
