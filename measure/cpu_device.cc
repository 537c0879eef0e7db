// What CPU this is: its facts as a Target, its name, and an identity that stays the same between
// runs.
#include <openssl/evp.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"
#include "measure/workbench.h"

namespace tilewright {
namespace {

// Features a kernel may gain from, and those that LLVM assumes of a CPU by its name although a
// hypervisor may hide them.
constexpr const char* kFeatures[] = {
    "sse4.2",     "avx",        "avx2",       "fma",      "f16c",     "bmi",      "bmi2",
    "lzcnt",      "popcnt",     "avx512f",    "avx512bw", "avx512cd", "avx512dq", "avx512vl",
    "avx512vnni", "avx512bf16", "avx512fp16", "avxvnni",  "amx-tile", "amx-int8", "amx-bf16",
};

// The namespace of CPU UUIDs (RFC 4122, version 5).
constexpr unsigned char kNamespace[16] = {0x6a, 0x1f, 0x0c, 0x52, 0x9d, 0x3b, 0x4e, 0x87,
                                          0x8c, 0x55, 0x21, 0xe4, 0x7b, 0x90, 0xd3, 0x6e};

std::string ReadLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return std::string(absl::StripAsciiWhitespace(line));
}

// "AMD EPYC 7763 64-Core Processor" -> "amd-epyc-7763".
std::string ModelSlug() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  std::string model;
  while (model.empty() && std::getline(file, line)) {
    if (line.rfind("model name", 0) == 0) model = line.substr(line.find(':') + 1);
  }
  for (char& c : model) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  model = model.substr(0, model.find(" @ "));
  std::vector<std::string> words;
  for (absl::string_view word :
       absl::StrSplit(model, absl::ByAnyChar(" \t-_"), absl::SkipEmpty())) {
    std::string kept;
    for (size_t i = 0; i < word.size(); ++i) {
      if (word.substr(i, 3) == "(r)") {
        i += 2;
      } else if (word.substr(i, 4) == "(tm)") {
        i += 3;
      } else if (std::isalnum(static_cast<unsigned char>(word[i]))) {
        kept += word[i];
      }
    }
    if (kept == "cpu" || kept == "processor" || kept.empty()) continue;
    if (kept == "core" && !words.empty()) {  // "64-core"
      words.pop_back();
      continue;
    }
    words.push_back(kept);
  }
  return words.empty() ? "unknown" : absl::StrJoin(words, "-");
}

std::string FeatureText(const std::string& cpu, const llvm::StringMap<bool>& host) {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  const std::string triple = llvm::sys::getProcessTriple();
  std::string error;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, error);
  std::unique_ptr<llvm::MCSubtargetInfo> named(
      target == nullptr ? nullptr : target->createMCSubtargetInfo(triple, cpu, ""));
  std::vector<std::string> words;
  for (const char* feature : kFeatures) {
    const auto found = host.find(feature);
    const bool present = found != host.end() && found->second;
    const bool assumed = named != nullptr && named->checkFeatures(absl::StrCat("+", feature));
    if (present) words.push_back(absl::StrCat("+", feature));
    if (!present && assumed) words.push_back(absl::StrCat("-", feature));
  }
  return absl::StrJoin(words, ",");
}

// Vector units by what LLVM calls the core: how many fused multiply-adds of the widest vectors
// start in a cycle. Sources: Agner Fog, "Instruction tables"; uops.info. Cores not listed have two.
struct VectorUnits {
  const char* llvm_cpu;
  int fma_per_cycle;
};
constexpr VectorUnits kVectorUnits[] = {
    {"znver1", 1},  // 128-bit units: a 256-bit multiply-add takes both
    {"znver4", 1},  // 256-bit units: likewise for 512 bits
    {"btver2", 1},
};

absl::StatusOr<int64_t> CacheBytes(int level, int fallback_name) {
  for (int index = 0; index < 8; ++index) {
    const std::string directory = absl::StrCat("/sys/devices/system/cpu/cpu0/cache/index", index);
    int found_level = 0;
    if (!absl::SimpleAtoi(ReadLine(absl::StrCat(directory, "/level")), &found_level)) break;
    if (found_level != level || ReadLine(absl::StrCat(directory, "/type")) == "Instruction")
      continue;
    const std::string size = ReadLine(absl::StrCat(directory, "/size"));
    int64_t kibibytes = 0;
    if (absl::SimpleAtoi(absl::StripSuffix(size, "K"), &kibibytes)) return kibibytes * 1024;
  }
  const long bytes = sysconf(fallback_name);
  if (bytes > 0) return static_cast<int64_t>(bytes);
  if (level == 3) return 0;  // some CPUs have none
  return absl::UnavailableError(
      absl::StrCat("the size of the level-", level,
                   " cache is neither in /sys/devices/system/cpu/cpu0/cache nor known to sysconf"));
}

// The machine's identity: systemd's, or a random one kept in the user's state directory.
absl::StatusOr<std::string> MachineId() {
  if (std::string id = ReadLine("/etc/machine-id"); !id.empty()) return id;
  const char* state = getenv("XDG_STATE_HOME");
  const char* home = getenv("HOME");
  if (state == nullptr && home == nullptr) {
    return absl::UnavailableError(
        "no identity for this machine: /etc/machine-id is missing, and neither XDG_STATE_HOME nor "
        "HOME says where to keep one");
  }
  const std::string directory = state != nullptr ? absl::StrCat(state, "/tilewright")
                                                 : absl::StrCat(home, "/.local/state/tilewright");
  const std::string path = absl::StrCat(directory, "/machine-id");
  if (std::string id = ReadLine(path); !id.empty()) return id;
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  std::random_device random;
  std::string id;
  for (int i = 0; i < 4; ++i) absl::StrAppendFormat(&id, "%08x", random());
  // Written whole and then put in place without replacing: of two processes that start at once, the
  // later takes the first's.
  const std::string temporary = absl::StrCat(path, ".", getpid());
  std::ofstream(temporary) << id << "\n";
  link(temporary.c_str(), path.c_str());
  unlink(temporary.c_str());
  const std::string kept = ReadLine(path);
  if (kept.empty()) {
    return absl::UnavailableError(absl::StrCat("cannot write this machine's identity to ", path));
  }
  return kept;
}

std::string NameBasedUuid(const std::string& name) {
  std::string input(reinterpret_cast<const char*>(kNamespace), sizeof(kNamespace));
  input += name;
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int bytes = 0;
  EVP_Digest(input.data(), input.size(), digest, &bytes, EVP_sha1(), nullptr);
  digest[6] = (digest[6] & 0x0f) | 0x50;
  digest[8] = (digest[8] & 0x3f) | 0x80;
  std::string uuid;
  for (int i = 0; i < 16; ++i) {
    absl::StrAppendFormat(&uuid, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                          digest[i]);
  }
  return uuid;
}

absl::StatusOr<std::vector<int>> AllowedCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) {
    return absl::UnavailableError("cannot read which cores this process may use");
  }
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

absl::StatusOr<Target> DescribeTarget(int cores) {
  Target target;
  const llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  const auto has = [&](const char* name) {
    const auto found = features.find(name);
    return found != features.end() && found->second;
  };
  const char* isa = has("avx512f") ? "avx512" : has("avx2") ? "avx2" : has("avx") ? "avx" : "sse2";
  target.kind = absl::StrCat("cpu:", ModelSlug(), "/", isa, "/", cores);
  target.backend = "host";
  target.llvm_cpu = llvm::sys::getHostCPUName().str();
  target.llvm_features = FeatureText(target.llvm_cpu, features);
  target.cores = cores;
  target.vector_bits = has("avx512f") ? 512 : has("avx") ? 256 : 128;
  target.vector_registers = has("avx512f") ? 32 : 16;
  target.fma_per_cycle = has("fma") ? 2 : 1;
  for (const VectorUnits& units : kVectorUnits) {
    if (target.llvm_cpu == units.llvm_cpu) target.fma_per_cycle = units.fma_per_cycle;
  }
  const struct {
    int level;
    int fallback;
    int64_t* bytes;
  } caches[] = {{1, _SC_LEVEL1_DCACHE_SIZE, &target.l1_bytes},
                {2, _SC_LEVEL2_CACHE_SIZE, &target.l2_bytes},
                {3, _SC_LEVEL3_CACHE_SIZE, &target.l3_bytes}};
  for (const auto& cache : caches) {
    const absl::StatusOr<int64_t> bytes = CacheBytes(cache.level, cache.fallback);
    if (!bytes.ok()) return bytes.status();
    *cache.bytes = *bytes;
  }
  if (const long line = sysconf(_SC_LEVEL1_DCACHE_LINESIZE); line > 0) {
    target.cache_line_bytes = static_cast<int>(line);
  }
  return target;
}

}  // namespace

absl::StatusOr<DeviceDescription> DescribeCpu(int cores) {
#if !defined(__x86_64__)
  return absl::UnimplementedError("only x86-64 CPUs can be devices; this is another");
#endif
  absl::StatusOr<std::vector<int>> allowed = AllowedCores();
  if (!allowed.ok()) return allowed.status();
  const int most = static_cast<int>(allowed->size());
  if (cores < 0 || cores > most) {
    return absl::InvalidArgumentError(absl::StrCat("cores: ", cores, " is not within 1..", most,
                                                   ", the cores this process may use (0: all)"));
  }
  if (cores == 0) cores = most;
  absl::StatusOr<Target> target = DescribeTarget(cores);
  if (!target.ok()) return target.status();
  absl::StatusOr<std::string> machine = MachineId();
  if (!machine.ok()) return machine.status();
  allowed->resize(cores);
  DeviceDescription device;
  device.target = *std::move(target);
  device.uuid = NameBasedUuid(
      absl::StrCat(*machine, "\n", device.target.ToString(), "\n", absl::StrJoin(*allowed, ",")));
  device.timer = "clock";
  utsname name;
  uname(&name);
  device.driver = name.release;
  return device;
}

}  // namespace tilewright
