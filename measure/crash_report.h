// Crash reports: a runner that is about to die of a signal says where and why, in one frame, before
// it goes. The worker turns that into a failure of the candidate.
//
// The kernel's threads and the runner share a process, so the handler trusts nothing but static
// memory and the descriptor.
#ifndef TILEWRIGHT_MEASURE_CRASH_REPORT_H_
#define TILEWRIGHT_MEASURE_CRASH_REPORT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "measure/failure.h"
#include "measure/guarded_memory.h"

namespace tilewright {

enum class MemoryRole : int32_t { kNone, kInputs, kOutputs, kWorkspace, kReferences };

// Plain bytes, as the frame carries them.
struct CrashRecord {
  int32_t signal = 0;
  int32_t is_write = 0;
  uint64_t address = 0;
  int32_t has_address = 0;
  int32_t on_stack = 0;  // within or just below a thread's stack
  MemoryRole role = MemoryRole::kNone;
  int32_t inside = 0;  // within a buffer, not beside it
  int32_t buffer = 0;  // its number among the buffers of its role
  int32_t entrant = 0;
  int64_t offset = 0;  // from the buffer's first byte
  int64_t bytes = 0;   // the buffer's size
  char phase[160] = {};
};

// Catches the signals that a kernel can cause. Every thread that runs kernels needs UseSignalStack
// too, for stack overflows.
void InstallCrashHandler();
void UseSignalStack();

// What is going on, for the report; copied. `entrant`: whose kernel runs, in finals.
void SetCrashPhase(const char* phase, int entrant);
const char* CrashPhase();
// Memory whose faults are told apart. `buffers_per_set` buffers make a set. The memory must be
// unwatched before it goes.
void WatchMemory(const GuardedMemory* memory, MemoryRole role, int buffers_per_set);
void UnwatchMemory(const GuardedMemory* memory);

// InvalidArgument: not a record.
absl::StatusOr<CrashRecord> ParseCrashRecord(const std::string& payload);
CandidateFailure DescribeCrash(const CrashRecord& record);

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_CRASH_REPORT_H_
