#include "codegen/library_kernel.h"

#include <algorithm>
#include <bit>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tilewright {
namespace {

constexpr absl::string_view kLibraryFormat = "library-";

// The buffers of a call, in order; one that a product lacks is given as its result's.
std::vector<int*> Buffers(LibraryProduct* p) {
  return {&p->a.buffer, &p->b.buffer, &p->c.buffer, &p->bias, &p->residual.buffer};
}

// Visits the integers behind the buffers, in order: `visit(read, write)` for each.
template <typename Visit>
void ForEachInteger(LibraryCall* call, Visit&& visit) {
  LibraryProduct& p = call->product;
  const auto field = [&](auto* value) {
    visit(static_cast<int64_t>(*value), [value](int64_t number) {
      *value = static_cast<std::remove_reference_t<decltype(*value)>>(number);
    });
  };
  field(&call->algorithm);
  for (int64_t* size : {&p.m, &p.n, &p.k, &p.batches}) field(size);
  for (LibraryProduct::Operand* operand : {&p.a, &p.b, &p.c, &p.residual}) {
    field(&operand->depth_contiguous);
    field(&operand->stride);
    field(&operand->batch_stride);
  }
  for (ElementType* type : {&p.operand_type, &p.output_type, &p.bias_type}) field(type);
  field(&p.has_residual);
  field(&p.activation);
  visit(std::bit_cast<int64_t>(p.scale),
        [&p](int64_t number) { p.scale = std::bit_cast<double>(number); });
  // Whether there is a bias; set before the buffers are read.
  visit(int64_t{p.bias >= 0}, [&p](int64_t number) { p.bias = number != 0 ? 0 : -1; });
}

bool IsType(ElementType type) { return static_cast<size_t>(type) < AllElementTypes().size(); }

}  // namespace

absl::StatusOr<Kernel> WriteLibraryKernel(const Workload& workload, const Schedule& schedule) {
  const std::string* name = schedule.Find("name");
  const std::string* algo = schedule.Find("algo");
  int algorithm = -1;
  if (name == nullptr || algo == nullptr || !absl::SimpleAtoi(*algo, &algorithm) || algorithm < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(schedule.ToString(), ": expected contraction.library{name=NAME algo=NUMBER}"));
  }
  const absl::Span<const Library> libraries = AllLibraries();
  const auto library = std::find_if(libraries.begin(), libraries.end(),
                                    [&](const Library& row) { return row.name == *name; });
  if (library == libraries.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("library '", *name, "' is unknown; accepted: ",
                     absl::StrJoin(libraries, ", ", [](std::string* out, const Library& row) {
                       absl::StrAppend(out, row.name);
                     })));
  }
  const absl::StatusOr<LibraryProduct> product =
      MatchLibraryProduct(workload, workload.HighestSizes());
  if (!product.ok()) return product.status();
  Kernel kernel;
  kernel.objects.push_back({absl::StrCat(kLibraryFormat, *name), ""});
  Launch launch;
  launch.entry = *name;
  launch.block = 1;
  LibraryCall call{*name, algorithm, *product};
  for (int* buffer : Buffers(&call.product)) {
    const bool absent = (buffer == &call.product.bias && *buffer < 0) ||
                        (buffer == &call.product.residual.buffer && !call.product.has_residual);
    launch.arguments.push_back(
        {Argument::Kind::kBuffer, absent ? call.product.c.buffer : *buffer, 0});
  }
  ForEachInteger(&call, [&](int64_t value, const auto&) {
    launch.arguments.push_back({Argument::Kind::kInteger, 0, value});
  });
  kernel.launches.push_back(std::move(launch));
  kernel.workspace.bytes = library->workspace_bytes;
  if (library->workspace_bytes > 0) kernel.workspace.alignment = 256;
  kernel.domain.sizes.assign(workload.sizes().begin(), workload.sizes().end());
  // Nothing is built, so a call is known by what it says.
  kernel.digests.binary = Sha256Hex(absl::StrCat(workload.canonical_text(), schedule.ToString()));
  return kernel;
}

absl::StatusOr<LibraryCall> ReadLibraryKernel(const Kernel& kernel) {
  const auto malformed = [] {
    return absl::InvalidArgumentError("recipe: not the call of a library");
  };
  if (kernel.objects.size() != 1 || kernel.launches.size() != 1 ||
      !absl::StartsWith(kernel.objects[0].format, kLibraryFormat)) {
    return malformed();
  }
  const std::vector<Argument>& arguments = kernel.launches[0].arguments;
  LibraryCall call;
  call.library = kernel.launches[0].entry;
  LibraryProduct& p = call.product;
  const std::vector<int*> buffers = Buffers(&p);
  size_t next = buffers.size();
  bool complete = true;
  ForEachInteger(&call, [&](int64_t, const auto& write) {
    complete = complete && next < arguments.size();
    if (complete) write(arguments[next++].value);
  });
  if (!complete || next != arguments.size() || !IsType(p.operand_type) || !IsType(p.output_type) ||
      !IsType(p.bias_type))
    return malformed();
  for (size_t i = 0; i < buffers.size(); ++i) {
    const bool absent = (buffers[i] == &p.bias && p.bias < 0) ||
                        (buffers[i] == &p.residual.buffer && !p.has_residual);
    if (!absent) *buffers[i] = arguments[i].number;
  }
  return call;
}

}  // namespace tilewright
