#include "codegen/pack.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "codegen/pack_text.h"

namespace tilewright {
namespace {

namespace fs = std::filesystem;

constexpr char kManifestName[] = "manifest.json";

absl::Status AtItem(const std::string& name, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat("workload '", name, "': ", status.message()));
}

// What every launcher's tables rely on, and then what its kind's do.
absl::Status CheckKernel(const Target& target, const Workload& workload, const Kernel& kernel,
                         const PackKind& kind) {
  const int buffers = workload.parameters().size() + workload.outputs().size();
  const int sizes = workload.sizes().size();
  if (kernel.domain.alignments.size() != buffers || kernel.domain.sizes.size() != sizes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the kernel's domain has ", kernel.domain.alignments.size(), " buffers and ",
                     kernel.domain.sizes.size(), " sizes, the workload ", buffers, " and ", sizes));
  }
  for (int64_t alignment : kernel.domain.alignments) {
    if (alignment < 1)
      return absl::InvalidArgumentError(
          absl::StrCat("the kernel's domain has an alignment of ", alignment));
  }
  if (kernel.workspace.bytes < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the kernel's workspace has ", kernel.workspace.bytes, " bytes"));
  }
  for (const Launch& launch : kernel.launches) {
    const bool is_symbol = launch.entry.starts_with("tw_") &&
                           std::all_of(launch.entry.begin(), launch.entry.end(),
                                       [](char c) { return absl::ascii_isalnum(c) || c == '_'; });
    if (!is_symbol)
      return absl::InvalidArgumentError(
          absl::StrCat("a launch's entry '", launch.entry, "' is no tw_ symbol"));
  }
  return kind.check(target, workload, kernel);
}

std::string MismatchOf(const Digests& expected, const Digests& got) {
  std::string text;
  auto compare = [&text](const char* name, const std::string& want, const std::string& have) {
    if (want.empty() || want == have) return;
    absl::StrAppend(&text, text.empty() ? "" : "; ", name, ": expected ", want.substr(0, 16),
                    ", got ", have.empty() ? "none" : have.substr(0, 16));
  };
  compare("ir", expected.ir, got.ir);
  compare("assembly", expected.assembly, got.assembly);
  compare("binary", expected.binary, got.binary);
  return text;
}

absl::Status CheckItems(absl::Span<const PackItem> items, const std::string& pack_name,
                        const PackKind& kind) {
  if (absl::Status status = CheckPackSymbol(pack_name); !status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("name of the pack: ", status.message()));
  }
  std::set<std::string> symbols;
  for (const PackFunction& function : kind.own_functions(pack_name)) symbols.insert(function.name);
  for (const PackItem& item : items) {
    if (absl::Status status = CheckPackSymbol(item.name); !status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("name of a workload: ", status.message()));
    }
    if (!symbols.insert(item.name).second ||
        !symbols.insert(absl::StrCat(item.name, "_workspace_bytes")).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("workload '", item.name,
                       "': the pack already has a function of that name; give each its own"));
    }
    if (absl::StatusOr<PackSignature> signature = SignatureOf(item); !signature.ok())
      return signature.status();
  }
  return absl::OkStatus();
}

// The old pack's kernel for this item, if nothing about it has changed.
const PackEntry* FindUnchanged(const Pack& old, const PackItem& item, const Target& target) {
  if (!(old.target == target)) return nullptr;
  for (const PackEntry& entry : old.entries) {
    if (entry.item.workload == item.workload && entry.item.schedule == item.schedule &&
        MismatchOf(item.expected, entry.kernel.digests).empty()) {
      return &entry;
    }
  }
  return nullptr;
}

absl::StatusOr<std::string> ReadFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return absl::NotFoundError(absl::StrCat(path.string(), ": cannot be read"));
  return std::string(std::istreambuf_iterator<char>(in), {});
}

absl::Status WriteFile(const fs::path& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), bytes.size());
  out.close();
  if (!out)
    return absl::UnavailableError(
        absl::StrCat(path.string(), ": cannot be written: ", std::strerror(errno)));
  return absl::OkStatus();
}

// All files of a pack, with paths relative to its directory.
std::vector<PackFile> FilesOf(const Pack& pack) {
  std::vector<PackFile> files = KindOf(pack).files(pack);
  files.push_back({absl::StrCat(pack.name, ".h"), PackHeader(pack)});
  files.push_back({kManifestName, ManifestJson(pack)});
  for (const PackEntry& entry : pack.entries) {
    for (const CodeObject& object : entry.kernel.objects)
      files.push_back({ObjectPath(object), object.bytes});
  }
  return files;
}

absl::Status WriteFiles(const Pack& pack, const fs::path& directory) {
  std::error_code error;
  fs::create_directories(directory / "kernels", error);
  if (error)
    return absl::UnavailableError(
        absl::StrCat(directory.string(), ": cannot be made: ", error.message()));
  for (const PackFile& file : FilesOf(pack)) {
    if (absl::Status status = WriteFile(directory / file.path, file.bytes); !status.ok())
      return status;
  }
  return absl::OkStatus();
}

// OK if everything in the directory of a pack is the pack's own.
absl::Status CheckHoldsNothingElse(const fs::path& directory) {
  const absl::StatusOr<Pack> old = ReadPack(directory.string());
  if (!old.ok()) {
    return absl::AlreadyExistsError(absl::StrCat(
        "the pack there cannot be read, so it is not replaced: ", old.status().message(),
        "; remove it or give a new name"));
  }
  std::set<std::string> own;
  for (const PackFile& file : FilesOf(*old)) own.insert(file.path);
  std::error_code error;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(directory, error)) {
    const std::string path = entry.path().lexically_relative(directory).string();
    if (path == "kernels" || own.contains(path)) continue;
    return absl::AlreadyExistsError(
        absl::StrCat(directory.string(), ": holds ", path,
                     ", which is not the pack's and would be lost; move it or give a new name"));
  }
  return absl::OkStatus();
}

// Puts `made` in the place of `directory`, whose content, if any, is afterwards gone.
absl::Status MoveInto(const fs::path& made, const fs::path& directory) {
  std::error_code error;
  if (!fs::exists(directory)) {
    fs::rename(made, directory, error);
  } else if (renameat2(AT_FDCWD, made.c_str(), AT_FDCWD, directory.c_str(), RENAME_EXCHANGE) == 0) {
    fs::remove_all(made, error);
  } else {
    // A file system without exchange: a reader may for a moment see no pack.
    const fs::path old = absl::StrCat(made.string(), ".old");
    fs::rename(directory, old, error);
    if (!error) fs::rename(made, directory, error);
    if (!error) fs::remove_all(old, error);
  }
  if (error)
    return absl::UnavailableError(
        absl::StrCat(directory.string(), ": cannot be replaced: ", error.message()));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Pack> BuildPack(absl::Span<const PackItem> items, const PackOptions& options) {
  const absl::StatusOr<const PackKind*> kind = FindPackKind(options.target);
  if (!kind.ok()) return kind.status();
  if (absl::Status status = CheckItems(items, options.name, **kind); !status.ok()) return status;
  Pack old;
  if (!options.reuse.empty()) {
    absl::StatusOr<Pack> read = ReadPack(options.reuse);
    if (!read.ok()) return read.status();
    old = *std::move(read);
  }
  Pack pack{.name = options.name, .target = options.target};
  for (const PackItem& item : items) {
    PackEntry entry{.item = item};
    if (const PackEntry* unchanged = FindUnchanged(old, item, options.target)) {
      entry.kernel = unchanged->kernel;
      entry.toolchain = unchanged->toolchain;
      entry.reused = true;
    } else {
      absl::StatusOr<Kernel> kernel =
          WriteKernel({item.workload, options.target, item.schedule}, options.catalogue);
      if (!kernel.ok()) return AtItem(item.name, kernel.status());
      entry.kernel = *std::move(kernel);
      entry.toolchain = ToolchainId(options.target);
      entry.digest_mismatch = MismatchOf(item.expected, entry.kernel.digests);
      const bool ptx = absl::StartsWith(entry.kernel.objects.front().format, "ptx-");
      if (ptx && !entry.digest_mismatch.empty())
        absl::StrAppend(&entry.digest_mismatch, "; it is PTX, because no ptxas was found");
    }
    if (absl::Status status = CheckKernel(options.target, item.workload, entry.kernel, **kind);
        !status.ok())
      return AtItem(item.name, status);
    pack.entries.push_back(std::move(entry));
  }
  return pack;
}

absl::Status WritePack(const Pack& pack, const std::string& directory) {
  fs::path path = fs::absolute(directory).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  std::error_code error;
  if (fs::exists(path) && !fs::is_empty(path, error)) {
    absl::StatusOr<std::string> manifest = ReadFile(path / kManifestName);
    if (!fs::is_directory(path) || !manifest.ok() ||
        manifest->find("\"tilewright-pack\"") == std::string::npos) {
      return absl::AlreadyExistsError(absl::StrCat(
          path.string(), ": exists and is no pack; give an empty directory, a pack or a new name"));
    }
    if (absl::Status status = CheckHoldsNothingElse(path); !status.ok()) return status;
  }
  fs::create_directories(path.parent_path(), error);
  const fs::path made = absl::StrCat(path.string(), ".new-", getpid());
  fs::remove_all(made, error);
  absl::Status status = WriteFiles(pack, made);
  if (status.ok()) status = MoveInto(made, path);
  if (!status.ok()) fs::remove_all(made, error);
  return status;
}

absl::StatusOr<Pack> ReadPack(const std::string& directory) {
  const fs::path path = directory;
  absl::StatusOr<std::string> text = ReadFile(path / kManifestName);
  if (!text.ok()) {
    return absl::NotFoundError(
        absl::StrCat(directory, ": is no pack: it has no readable ", kManifestName));
  }
  absl::StatusOr<Pack> pack =
      ParseManifest(*text, [&path](const std::string& object) { return ReadFile(path / object); });
  if (!pack.ok())
    return absl::Status(pack.status().code(),
                        absl::StrCat(directory, ": ", pack.status().message()));
  const absl::StatusOr<const PackKind*> kind = FindPackKind(pack->target);
  if (!kind.ok()) return kind.status();
  for (const PackEntry& entry : pack->entries) {
    if (absl::Status status = CheckKernel(pack->target, entry.item.workload, entry.kernel, **kind);
        !status.ok()) {
      return AtItem(entry.item.name, status);
    }
  }
  return pack;
}

}  // namespace tilewright
