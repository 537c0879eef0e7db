#include "codegen/library_kernel.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace tilewright {
namespace {

constexpr absl::string_view kLibraryFormat = "library-";
// What libraries may use; cuBLASLt's own advice for Hopper.
constexpr int64_t kLibraryWorkspaceBytes = int64_t{32} << 20;
constexpr int kLibraryBuffers = 3;

// The integers behind the buffers, in order.
std::vector<int64_t> Integers(const LibraryProduct& p, int algorithm) {
  return {p.m,
          p.n,
          p.k,
          p.a.depth_contiguous,
          p.a.stride,
          p.b.depth_contiguous,
          p.b.stride,
          p.c.stride,
          static_cast<int64_t>(p.operand_type),
          static_cast<int64_t>(p.output_type),
          algorithm};
}

}  // namespace

absl::StatusOr<Kernel> WriteLibraryKernel(const Workload& workload, const Schedule& schedule) {
  const std::string* name = schedule.Find("name");
  const std::string* algo = schedule.Find("algo");
  int algorithm = -1;
  if (name == nullptr || algo == nullptr || !absl::SimpleAtoi(*algo, &algorithm) || algorithm < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(schedule.ToString(), ": expected contraction.library{name=NAME algo=NUMBER}"));
  }
  const absl::StatusOr<LibraryProduct> product =
      MatchLibraryProduct(workload, workload.HighestSizes());
  if (!product.ok()) return product.status();
  Kernel kernel;
  kernel.objects.push_back({absl::StrCat(kLibraryFormat, *name), ""});
  Launch launch;
  launch.entry = *name;
  launch.block = 1;
  for (int buffer : {product->a.buffer, product->b.buffer, product->c.buffer}) {
    launch.arguments.push_back({Argument::Kind::kBuffer, buffer, 0});
  }
  for (int64_t value : Integers(*product, algorithm)) {
    launch.arguments.push_back({Argument::Kind::kInteger, 0, value});
  }
  kernel.launches.push_back(std::move(launch));
  kernel.workspace.bytes = kLibraryWorkspaceBytes;
  kernel.workspace.alignment = 256;
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
  if (arguments.size() != kLibraryBuffers + Integers({}, 0).size()) return malformed();
  const auto integer = [&](int number) { return arguments[kLibraryBuffers + number].value; };
  LibraryCall call;
  call.library = kernel.launches[0].entry;
  LibraryProduct& p = call.product;
  p.a.buffer = arguments[0].number;
  p.b.buffer = arguments[1].number;
  p.c.buffer = arguments[2].number;
  p.m = integer(0);
  p.n = integer(1);
  p.k = integer(2);
  p.a.depth_contiguous = integer(3) != 0;
  p.a.stride = integer(4);
  p.b.depth_contiguous = integer(5) != 0;
  p.b.stride = integer(6);
  p.c.stride = integer(7);
  const auto types = static_cast<int64_t>(AllElementTypes().size());
  if (integer(8) < 0 || integer(8) >= types || integer(9) < 0 || integer(9) >= types) {
    return malformed();
  }
  p.operand_type = static_cast<ElementType>(integer(8));
  p.output_type = static_cast<ElementType>(integer(9));
  call.algorithm = static_cast<int>(integer(10));
  return call;
}

}  // namespace tilewright
