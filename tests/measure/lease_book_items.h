// Ids, runs and items for tests of the lease book.
#ifndef TILEWRIGHT_TESTS_MEASURE_LEASE_BOOK_ITEMS_H_
#define TILEWRIGHT_TESTS_MEASURE_LEASE_BOOK_ITEMS_H_

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "measure/measure.pb.h"

namespace tilewright {

inline constexpr char kTarget[] = "cpu:test{backend=host}";
inline constexpr char kToolchain[] = "codegen 1";

inline std::string Id(int number) {
  std::string text = absl::StrCat(number);
  return std::string(16 - text.size(), '.') + text;
}

inline v1::RunSpec Spec(int run) {
  v1::RunSpec spec;
  spec.set_run_id(Id(run));
  spec.set_workload_text("C[m,n] = sum(k: A[m,k] * B[k,n])");
  spec.set_target_text(kTarget);
  return spec;
}

inline v1::WorkItem Screening(const std::string& schedule) {
  v1::WorkItem item;
  item.mutable_screen()->set_schedule(schedule);
  return item;
}

inline v1::WorkItem FinalsOf(const std::vector<std::string>& schedules) {
  v1::WorkItem item;
  for (const std::string& schedule : schedules) item.mutable_finals()->add_schedules(schedule);
  item.mutable_finals()->set_rounds(6);
  return item;
}

}  // namespace tilewright

#endif  // TILEWRIGHT_TESTS_MEASURE_LEASE_BOOK_ITEMS_H_
