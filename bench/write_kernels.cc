// Writes the kernels of a list into a folder, for runs on another machine (examples/pytorch).
//
//   write_kernels LIST FOLDER [TARGET]
//
// A line of LIST: name; expression; sizes; types; schedule; reference. A schedule of a variant's
// name alone is that variant's default, and `reference` the kernel that output checks compare with:
// each output is then two, its values and their bounds, in f64. The reference, Python over tensors
// of the expression's names, is passed on. For each line FOLDER/name.json (recipe, buffers by name,
// shapes) and FOLDER/name.cubin.
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "codegen/writer.h"

namespace tilewright {
namespace {

using nlohmann::json;

struct Case {
  std::string name, expression, sizes, types, schedule, reference;
};

absl::StatusOr<Case> ParseCase(const std::string& line) {
  std::vector<std::string> fields = absl::StrSplit(line, absl::MaxSplits(';', 5));
  if (fields.size() != 6) return absl::InvalidArgumentError("a line has six fields, ';' between");
  for (std::string& field : fields) field = std::string(absl::StripAsciiWhitespace(field));
  return Case{fields[0], fields[1], fields[2], fields[3], fields[4], fields[5]};
}

absl::StatusOr<Schedule> ScheduleOf(const Case& wanted, const ScheduleSpace& space) {
  if (wanted.schedule.find('{') != std::string::npos) return ParseSchedule(wanted.schedule);
  for (const Variant* variant : space.variants()) {
    if (variant->name == wanted.schedule)
      return variant->default_schedule(space.workload(), space.target());
  }
  return absl::InvalidArgumentError(absl::StrCat("no variant ", wanted.schedule, " applies"));
}

// Elements from one position of each dimension to the next in a dense tensor.
std::vector<int64_t> DenseStrides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

// The buffers of a kernel, in order.
json BuffersOf(const Workload& workload, const Names& names, bool is_reference) {
  const Sizes sizes = workload.HighestSizes();
  json buffers = json::array();
  auto add = [&](int tensor, bool output) {
    buffers.push_back({{"name", names.tensors[tensor]},
                       {"type", Info(workload.layout(tensor).type).name},
                       {"shape", workload.Shape(tensor, sizes)},
                       {"strides", workload.Strides(tensor, sizes)},
                       {"elements", workload.BufferElements(tensor, sizes)},
                       {"output", output}});
  };
  for (int tensor : workload.parameters()) add(tensor, false);
  for (int tensor : workload.outputs()) {
    if (!is_reference) {
      add(tensor, true);
      continue;
    }
    const std::vector<int64_t> shape = workload.Shape(tensor, sizes);
    const std::vector<int64_t> strides = DenseStrides(shape);
    for (const char* part : {"", ".bound"}) {
      buffers.push_back({{"name", absl::StrCat(names.tensors[tensor], part)},
                         {"type", "f64"},
                         {"shape", shape},
                         {"strides", strides},
                         {"elements", shape.empty() ? 1 : shape[0] * strides[0]},
                         {"output", true}});
    }
  }
  return buffers;
}

absl::Status WriteCase(const Case& wanted, const Target& target, const std::string& folder) {
  Names names;
  auto workload = Workload::Make(wanted.expression, {wanted.sizes, wanted.types}, &names);
  if (!workload.ok()) return workload.status();
  auto space = ScheduleSpace::Make(*workload, target, AllVariants());
  if (!space.ok()) return space.status();
  const bool is_reference = wanted.schedule == "reference";
  std::string written = wanted.schedule;
  absl::StatusOr<Kernel> kernel;
  if (is_reference) {
    kernel = WriteReferenceKernel(*workload, target, 0x1p-24, 1);
  } else {
    auto schedule = ScheduleOf(wanted, **space);
    if (!schedule.ok()) return schedule.status();
    written = schedule->ToString();
    kernel = WriteKernel({*workload, target, *schedule}, DefaultCatalogue());
  }
  if (!kernel.ok()) return kernel.status();
  const Sizes sizes = workload->HighestSizes();
  const json file = {{"name", wanted.name},
                     {"expression", wanted.expression},
                     {"reference", wanted.reference},
                     {"schedule", written},
                     {"sizes", sizes},
                     {"operations", workload->Operations(sizes)},
                     {"buffers", BuffersOf(*workload, names, is_reference)},
                     {"recipe", json::parse(kernel->RecipeJson())}};
  std::ofstream(absl::StrCat(folder, "/", wanted.name, ".json")) << file.dump(1);
  std::ofstream(absl::StrCat(folder, "/", wanted.name, ".cubin"), std::ios::binary)
      << kernel->objects[0].bytes;
  std::cout << wanted.name << " " << written;
  for (const auto& [name, value] : kernel->resources) std::cout << " " << name << "=" << value;
  std::cout << "\n";
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "write_kernels LIST FOLDER [TARGET]\n";
    return 2;
  }
  auto target = FindTarget(argc > 3 ? argv[3] : "cuda:h200");
  if (!target.ok()) {
    std::cerr << target.status().message() << "\n";
    return 2;
  }
  std::ifstream list(argv[1]);
  if (!list) {
    std::cerr << argv[1] << " cannot be read\n";
    return 2;
  }
  int failed = 0;
  for (std::string line; std::getline(list, line);) {
    if (line.empty() || line[0] == '#') continue;
    auto wanted = ParseCase(line);
    const absl::Status written =
        wanted.ok() ? WriteCase(*wanted, *target, argv[2]) : wanted.status();
    if (written.ok()) continue;
    std::cerr << line << "\n  " << written.message() << "\n";
    ++failed;
  }
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tilewright

int main(int argc, char** argv) { return tilewright::Main(argc, argv); }
