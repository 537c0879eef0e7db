#include "measure/loaded_kernel.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/mman.h>

#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "llvm/ExecutionEngine/JITSymbol.h"
#include "llvm/ExecutionEngine/RuntimeDyld.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/MemoryBuffer.h"

namespace tilewright {
namespace {

// What a kernel's object may take from outside. Reference kernels call the math library; LLVM turns
// loops into memory functions and conversions of short floats into the compiler's functions.
constexpr const char* kAllowedSymbols[] = {
    "memcpy",   "memmove", "memset",    "bcmp",      "memcmp",     "exp",        "exp2",   "expm1",
    "log",      "log2",    "log1p",     "pow",       "sqrt",       "tanh",       "erf",    "erfc",
    "sin",      "cos",     "fabs",      "fmin",      "fmax",       "floor",      "ceil",   "trunc",
    "round",    "rint",    "nearbyint", "roundeven", "fma",        "fmod",       "ldexp",  "frexp",
    "copysign", "expf",    "exp2f",     "expm1f",    "logf",       "log2f",      "log1pf", "powf",
    "sqrtf",    "tanhf",   "erff",      "erfcf",     "fabsf",      "fminf",      "fmaxf",  "floorf",
    "ceilf",    "truncf",  "roundf",    "rintf",     "nearbyintf", "roundevenf", "fmaf",   "fmodf",
    "ldexpf",   "frexpf",  "copysignf",
};

extern "C" {
// In libgcc, which is linked statically and so not found by name at run time.
uint16_t __truncsfhf2(float);   // NOLINT
uint16_t __truncdfhf2(double);  // NOLINT
float __extendhfsf2(uint16_t);  // NOLINT
}

const std::map<std::string, uint64_t, std::less<>>& Symbols() {
  static const auto* symbols = [] {
    auto* map = new std::map<std::string, uint64_t, std::less<>>;
    for (const char* name : kAllowedSymbols) {
      if (void* address = dlsym(RTLD_DEFAULT, name)) {
        (*map)[name] = reinterpret_cast<uint64_t>(address);
      }
    }
    (*map)["__truncsfhf2"] = reinterpret_cast<uint64_t>(&__truncsfhf2);
    (*map)["__truncdfhf2"] = reinterpret_cast<uint64_t>(&__truncdfhf2);
    (*map)["__extendhfsf2"] = reinterpret_cast<uint64_t>(&__extendhfsf2);
    return map;
  }();
  return *symbols;
}

// Puts all sections of an object into one mapping, so that they reach each other with 32-bit
// offsets.
class OneMapping : public llvm::RuntimeDyld::MemoryManager {
 public:
  ~OneMapping() override {
    if (base_ != nullptr) munmap(base_, bytes_);
  }
  bool needsToReserveAllocationSpace() override { return true; }
  void reserveAllocationSpace(uintptr_t code_bytes, llvm::Align code_align,
                              uintptr_t constant_bytes, llvm::Align constant_align,
                              uintptr_t data_bytes, llvm::Align data_align) override {
    // Slack for the alignment of each section and for the stubs of far calls.
    const size_t code = RoundUp(code_bytes + code_align.value() * kSections);
    const size_t constants = RoundUp(constant_bytes + constant_align.value() * kSections);
    const size_t data = RoundUp(data_bytes + data_align.value() * kSections);
    bytes_ = code + constants + data;
    void* base = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) return;
    base_ = static_cast<uint8_t*>(base);
    parts_[0] = {base_, base_ + code};
    parts_[1] = {base_ + code, base_ + code + constants};
    parts_[2] = {base_ + code + constants, base_ + bytes_};
    for (int i = 0; i < 3; ++i) next_[i] = parts_[i].first;
  }
  uint8_t* allocateCodeSection(uintptr_t bytes, unsigned alignment, unsigned,
                               llvm::StringRef) override {
    return Carve(0, bytes, alignment);
  }
  uint8_t* allocateDataSection(uintptr_t bytes, unsigned alignment, unsigned, llvm::StringRef,
                               bool read_only) override {
    return Carve(read_only ? 1 : 2, bytes, alignment);
  }
  void registerEHFrames(uint8_t*, uint64_t, size_t) override {}  // kernels do not unwind
  void deregisterEHFrames() override {}
  bool finalizeMemory(std::string*) override {
    mprotect(parts_[0].first, parts_[0].second - parts_[0].first, PROT_READ | PROT_EXEC);
    mprotect(parts_[1].first, parts_[1].second - parts_[1].first, PROT_READ);
    return false;
  }
  bool mapped() const { return base_ != nullptr; }

 private:
  static constexpr size_t kSections = 64;
  static size_t RoundUp(size_t value) { return (value + 4095) / 4096 * 4096; }
  uint8_t* Carve(int part, uintptr_t bytes, unsigned alignment) {
    if (alignment == 0) alignment = 16;
    uintptr_t address = reinterpret_cast<uintptr_t>(next_[part]);
    address = (address + alignment - 1) / alignment * alignment;
    uint8_t* start = reinterpret_cast<uint8_t*>(address);
    if (base_ == nullptr || start + bytes > parts_[part].second) return nullptr;
    next_[part] = start + bytes;
    return start;
  }

  uint8_t* base_ = nullptr;
  size_t bytes_ = 0;
  std::pair<uint8_t*, uint8_t*> parts_[3] = {};
  uint8_t* next_[3] = {};
};

class AllowedSymbols : public llvm::LegacyJITSymbolResolver {
 public:
  llvm::JITSymbol findSymbol(const std::string& name) override {
    const auto found = Symbols().find(name);
    if (found == Symbols().end()) {
      missing_ = name;
      return nullptr;
    }
    return llvm::JITSymbol(found->second, llvm::JITSymbolFlags::Exported);
  }
  llvm::JITSymbol findSymbolInLogicalDylib(const std::string&) override { return nullptr; }
  const std::string& missing() const { return missing_; }

 private:
  std::string missing_;
};

class HostKernel : public LoadedKernel {
 public:
  absl::Status LoadObjects(const Kernel& kernel) {
    for (const CodeObject& object : kernel.objects) {
      if (object.format != "elf-x86_64") {
        return absl::UnimplementedError(
            absl::StrCat("object format '", object.format, "' cannot run here; elf-x86_64 can"));
      }
      if (absl::Status status = LoadObject(object.bytes); !status.ok()) return status;
    }
    for (const Launch& launch : kernel.launches) {
      void* entry = nullptr;
      for (Part& part : parts_) {
        if (void* found = part.linker->getSymbolLocalAddress(launch.entry)) entry = found;
      }
      if (entry == nullptr) {
        return absl::InvalidArgumentError(
            absl::StrCat("the kernel's objects have no entry '", launch.entry, "'"));
      }
      entries_.push_back(reinterpret_cast<HostEntry>(entry));
    }
    return absl::OkStatus();
  }
  const std::vector<HostEntry>& entries() const override { return entries_; }

 private:
  struct Part {
    std::unique_ptr<OneMapping> memory;
    std::unique_ptr<AllowedSymbols> symbols;
    std::unique_ptr<llvm::RuntimeDyld> linker;
  };

  absl::Status LoadObject(const std::string& bytes) {
    llvm::Expected<std::unique_ptr<llvm::object::ObjectFile>> object =
        llvm::object::ObjectFile::createObjectFile(
            llvm::MemoryBufferRef(llvm::StringRef(bytes), "kernel"));
    if (!object) {
      return absl::InvalidArgumentError(
          absl::StrCat("unreadable object: ", llvm::toString(object.takeError())));
    }
    Part& part = parts_.emplace_back();
    part.memory = std::make_unique<OneMapping>();
    part.symbols = std::make_unique<AllowedSymbols>();
    part.linker = std::make_unique<llvm::RuntimeDyld>(*part.memory, *part.symbols);
    part.linker->loadObject(**object);
    if (!part.memory->mapped())
      return absl::ResourceExhaustedError("no memory for the kernel's code");
    if (!part.linker->hasError()) part.linker->resolveRelocations();
    if (part.linker->hasError()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "cannot link the kernel: ", std::string(part.linker->getErrorString()),
          part.symbols->missing().empty() ? "" : "; not allowed: ", part.symbols->missing()));
    }
    part.memory->finalizeMemory(nullptr);
    return absl::OkStatus();
  }

  std::vector<Part> parts_;
  std::vector<HostEntry> entries_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LoadedKernel>> LoadedKernel::Load(const Kernel& kernel) {
  auto loaded = std::make_unique<HostKernel>();
  if (absl::Status status = loaded->LoadObjects(kernel); !status.ok()) return status;
  return loaded;
}

}  // namespace tilewright
