// A VFS of SQLite that fails on demand: the Nth write, sync or truncation, once or from then on.
//
// It wraps the default VFS, so that files are real. One plan for the process; tests that use it run
// alone.
#ifndef TILEWRIGHT_TESTS_DB_FAULT_VFS_H_
#define TILEWRIGHT_TESTS_DB_FAULT_VFS_H_

namespace tilewright {

enum class FaultKind { kDiskFull, kIoError };

class FaultVfs {
 public:
  static constexpr char kName[] = "tilewright_faults";
  // Registers the VFS at the first call.
  static void Register();

  // The operation number `nth` (1 is the next) fails; `persistent`: and all after it.
  static void Arm(int nth, bool persistent, FaultKind kind);
  static void Disarm();
  // Operations since Arm, and whether one failed.
  static int operations();
  static bool fired();

  // From now on -wal files cannot be opened: a directory in which we may not write.
  static void DenyLogs(bool deny);
};

}  // namespace tilewright

#endif  // TILEWRIGHT_TESTS_DB_FAULT_VFS_H_
