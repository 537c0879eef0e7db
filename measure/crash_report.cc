#include "measure/crash_report.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "measure/child_process.h"
#include "measure/frames.h"

namespace tilewright {
namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGABRT};
constexpr size_t kSignalStackBytes = 64 << 10;
// A frame larger than the guard page may step this far below a stack before it faults.
constexpr uintptr_t kStackOvershoot = 64 << 20;

struct Watched {
  const GuardedMemory* memory;
  MemoryRole role;
  int buffers_per_set;
};
Watched watched[64];
char phase[sizeof(CrashRecord::phase)];
int entrant;

thread_local uintptr_t stack_low = 0;
thread_local uintptr_t stack_high = 0;

void LocateFault(const void* address, CrashRecord* record) {
  for (const Watched& w : watched) {
    if (w.memory == nullptr) continue;
    const GuardedMemory::Location location = w.memory->Locate(address);
    if (location.place == GuardedMemory::Place::kElsewhere) continue;
    record->role = w.role;
    record->inside = location.place == GuardedMemory::Place::kInside;
    record->buffer = w.buffers_per_set > 0 ? location.buffer % w.buffers_per_set : location.buffer;
    record->offset = location.offset;
    if (location.buffer >= 0) record->bytes = w.memory->buffers()[location.buffer].bytes;
    return;
  }
}

void Handle(int signal, siginfo_t* info, void* context) {
  CrashRecord record;
  record.signal = signal;
  record.entrant = entrant;
  memcpy(record.phase, phase, sizeof(phase));
  if ((signal == SIGSEGV || signal == SIGBUS) && info->si_code > 0) {
    record.address = reinterpret_cast<uint64_t>(info->si_addr);
    // A non-canonical address is reported as 0 with the code SI_KERNEL.
    record.has_address = info->si_code != SI_KERNEL;
#if defined(__x86_64__)
    record.is_write = (static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & 2) != 0;
#endif
    record.on_stack = record.has_address && record.address + kStackOvershoot >= stack_low &&
                      record.address < stack_high && stack_high != 0;
    if (record.has_address) LocateFault(info->si_addr, &record);
  }
  struct {
    FrameHeader header;
    CrashRecord record;
  } frame{{sizeof(CrashRecord), static_cast<uint32_t>(FrameKind::kCrash)}, record};
  static_assert(sizeof(frame) == sizeof(FrameHeader) + sizeof(CrashRecord));
  if (write(kChildDescriptor, &frame, sizeof(frame)) < 0) _exit(2);
  _exit(1);
}

std::string_view RoleName(MemoryRole role) {
  switch (role) {
    case MemoryRole::kInputs:
      return "input";
    case MemoryRole::kOutputs:
      return "output";
    case MemoryRole::kWorkspace:
      return "workspace";
    case MemoryRole::kReferences:
      return "reference";
    case MemoryRole::kNone:
      break;
  }
  return "memory";
}

}  // namespace

void UseSignalStack() {
  void* memory =
      mmap(nullptr, kSignalStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory != MAP_FAILED) {
    stack_t stack{};
    stack.ss_sp = memory;
    stack.ss_size = kSignalStackBytes;
    sigaltstack(&stack, nullptr);
  }
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
    void* low = nullptr;
    size_t bytes = 0;
    pthread_attr_getstack(&attributes, &low, &bytes);
    stack_low = reinterpret_cast<uintptr_t>(low);
    stack_high = stack_low + bytes;
    pthread_attr_destroy(&attributes);
  }
}

void InstallCrashHandler() {
  UseSignalStack();
  struct sigaction action {};
  action.sa_sigaction = Handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigfillset(&action.sa_mask);
  for (int signal : kSignals) sigaction(signal, &action, nullptr);
}

void SetCrashPhase(const char* text, int number) {
  snprintf(phase, sizeof(phase), "%s", text);
  entrant = number;
}

const char* CrashPhase() { return phase; }

void WatchMemory(const GuardedMemory* memory, MemoryRole role, int buffers_per_set) {
  for (Watched& w : watched) {
    if (w.memory != nullptr) continue;
    w = {memory, role, buffers_per_set};
    return;
  }
}

void UnwatchMemory(const GuardedMemory* memory) {
  for (Watched& w : watched) {
    if (w.memory == memory) w.memory = nullptr;
  }
}

absl::StatusOr<CrashRecord> ParseCrashRecord(const std::string& payload) {
  if (payload.size() != sizeof(CrashRecord)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a crash record has ", sizeof(CrashRecord), " B, not ", payload.size()));
  }
  CrashRecord record;
  memcpy(static_cast<void*>(&record), payload.data(), sizeof(record));
  record.phase[sizeof(record.phase) - 1] = '\0';
  return record;
}

CandidateFailure DescribeCrash(const CrashRecord& record) {
  const std::string when = absl::StrCat(" (", record.phase, ")");
  if (record.role == MemoryRole::kInputs && record.inside && record.is_write) {
    return {FailureKind::kInputModified,
            absl::StrFormat("wrote to input %d at byte %d of %d%s", record.buffer, record.offset,
                            record.bytes, when)};
  }
  if (record.role != MemoryRole::kNone) {
    const std::string_view role = RoleName(record.role);
    return {FailureKind::kOutOfBounds,
            absl::StrFormat("%s %s %d at byte %d of %d%s", record.is_write ? "wrote to" : "read",
                            absl::string_view(role.data(), role.size()), record.buffer,
                            record.offset, record.bytes, when)};
  }
  std::string text = SignalName(record.signal);
  if (record.on_stack) {
    absl::StrAppend(&text, ": stack overflow");
  } else if (record.has_address) {
    absl::StrAppendFormat(&text, ": %s address 0x%x", record.is_write ? "wrote to" : "read",
                          record.address);
  }
  return {FailureKind::kCrashed, absl::StrCat(text, when)};
}

}  // namespace tilewright
