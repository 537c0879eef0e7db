// A pack is a directory that a production build compiles against: kernels, a C header with one
// function per workload, the source of their launcher, a CMake package and a manifest
// (docs/formats/manifest.md). Nothing of the tuner is in it.
//
//   PackOptions options{.name = "ops", .target = target, .catalogue = DefaultCatalogue()};
//   absl::StatusOr<Pack> pack = BuildPack(items, options);  // nothing is written yet
//   if (pack.ok()) status = WritePack(*pack, "out/ops");
//
// A pack's function interprets the same recipe as the runner that measured the kernel. There are
// packs for the backends of AllPackKinds (pack_text.h).
// Deterministic: the same items, target and toolchain give the same bytes in every file.
#ifndef TILEWRIGHT_CODEGEN_PACK_H_
#define TILEWRIGHT_CODEGEN_PACK_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "codegen/kernel.h"
#include "codegen/writer.h"
#include "schedule/schedule.h"
#include "schedule/target.h"
#include "schedule/workload.h"

namespace tilewright {

// The newest version of manifest.json. Packs for CPUs say 1, for GPUs 2.
inline constexpr int kManifestVersion = 2;

// Where an item's schedule comes from and how far it may be trusted. Kept in the manifest and in
// the header's comments.
struct Provenance {
  std::string kind;    // "verdict", "unverified", "unmeasured" or "default"
  std::string detail;  // for people: the record's id, the ratio; may be empty
  bool operator==(const Provenance&) const = default;
};

// What a pack shall contain under one name.
struct PackItem {
  std::string name;  // the C function
  Workload workload;
  // The caller's names, and his expression: tensors become arguments in the order in which it names
  // them, inputs before outputs, so that no rewriting of the expression swaps two buffers.
  Names names;
  std::string source;
  std::string regime;  // text
  // GPU: the regime is one of dependent launch, so launches that can begin before the work ahead of
  // them in the stream has ended are asked to.
  bool dependent_launch = false;
  Schedule schedule;
  Digests expected;  // of the record that the schedule is from; an empty field is not compared
  Provenance provenance;
};

// OK if `name` can be a function of a pack: a C and C++ identifier that is no keyword, not reserved
// to the implementation or to packs (`tw_`), and not a function of the C library. InvalidArgument
// says which of these.
absl::Status CheckPackSymbol(std::string_view name);

struct PackOptions {
  // The CMake package, its target and the header's name. An identifier as CheckPackSymbol accepts
  // it.
  std::string name;
  Target target;
  Catalogue catalogue;
  // A pack whose unchanged entries (workload, target, schedule, and no expected digest that
  // differs) are copied byte for byte, whatever this toolchain would write; empty: none.
  std::string reuse;
};

// One workload's kernel, built or copied.
struct PackEntry {
  PackItem item;
  Kernel kernel;
  std::string toolchain;  // that wrote the kernel
  bool reused = false;
  // The expected digests that differ: "ir: expected 12ab…, got 34cd…"; empty if all are met.
  std::string digest_mismatch;
};

// A pack in memory. Immutable once built.
struct Pack {
  std::string name;
  Target target;
  std::vector<PackEntry> entries;  // in the order of the items
};

// Writes and compiles the kernels, or takes them from `reuse`. InvalidArgument: a bad name, two
// items of one name, names that do not fit the workload, or a schedule that is illegal; NotFound,
// DataLoss: `reuse` is no pack or is damaged; else as WriteKernel. The message names the item.
absl::StatusOr<Pack> BuildPack(absl::Span<const PackItem> items, const PackOptions& options);

// Writes the directory: into a temporary one beside it, then renamed over, so that a reader sees
// the old pack or the new one. AlreadyExists: `directory` holds something that is no pack or not of
// the pack there.
// Unavailable: the file system refused.
absl::Status WritePack(const Pack& pack, const std::string& directory);

// The text of manifest.json. It names objects by `kernels/<SHA-256>.o` (GPU: `.cubin`, `.ptx`).
std::string ManifestJson(const Pack& pack);

// Reads ManifestJson; `read_object` gives the bytes at a path that the manifest names. Entries read
// back have `reused` set and no digest_mismatch. InvalidArgument names the field;
// FailedPrecondition: a newer version; DataLoss: an object cannot be read or does not have its
// digest.
using ReadObject = std::function<absl::StatusOr<std::string>(const std::string& path)>;
absl::StatusOr<Pack> ParseManifest(std::string_view text, const ReadObject& read_object);

// Reads a pack's directory. NotFound: it has no manifest; else as ParseManifest.
absl::StatusOr<Pack> ReadPack(const std::string& directory);

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_PACK_H_
