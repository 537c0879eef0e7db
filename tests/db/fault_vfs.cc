#include "fault_vfs.h"

#include <sqlite3.h>

#include <new>

namespace tilewright {
namespace {

struct Plan {
  int nth = 0;  // 0: no fault
  bool persistent = false;
  FaultKind kind = FaultKind::kDiskFull;
  int operations = 0;
  bool fired = false;
  bool deny_logs = false;
};
Plan plan;

bool Fails() {
  ++plan.operations;
  if (plan.nth == 0) return false;
  const bool fails = plan.persistent ? plan.operations >= plan.nth : plan.operations == plan.nth;
  plan.fired = plan.fired || fails;
  return fails;
}

int Code(int io_error) { return plan.kind == FaultKind::kDiskFull ? SQLITE_FULL : io_error; }

// What SQLite allocates for a file: this, and after it the default VFS's own.
struct FaultFile {
  sqlite3_file base;
  sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};
sqlite3_file* Real(sqlite3_file* file) { return reinterpret_cast<FaultFile*>(file)->real(); }
const sqlite3_io_methods* Methods(sqlite3_file* file) { return Real(file)->pMethods; }

int Close(sqlite3_file* f) { return Methods(f)->xClose(Real(f)); }
int Read(sqlite3_file* f, void* data, int size, sqlite3_int64 at) {
  return Methods(f)->xRead(Real(f), data, size, at);
}
int Write(sqlite3_file* f, const void* data, int size, sqlite3_int64 at) {
  return Fails() ? Code(SQLITE_IOERR_WRITE) : Methods(f)->xWrite(Real(f), data, size, at);
}
int Truncate(sqlite3_file* f, sqlite3_int64 size) {
  return Fails() ? Code(SQLITE_IOERR_TRUNCATE) : Methods(f)->xTruncate(Real(f), size);
}
int Sync(sqlite3_file* f, int flags) {
  return Fails() ? Code(SQLITE_IOERR_FSYNC) : Methods(f)->xSync(Real(f), flags);
}
int FileSize(sqlite3_file* f, sqlite3_int64* size) { return Methods(f)->xFileSize(Real(f), size); }
int Lock(sqlite3_file* f, int level) { return Methods(f)->xLock(Real(f), level); }
int Unlock(sqlite3_file* f, int level) { return Methods(f)->xUnlock(Real(f), level); }
int CheckReserved(sqlite3_file* f, int* out) {
  return Methods(f)->xCheckReservedLock(Real(f), out);
}
int FileControl(sqlite3_file* f, int op, void* arg) {
  return Methods(f)->xFileControl(Real(f), op, arg);
}
int SectorSize(sqlite3_file* f) { return Methods(f)->xSectorSize(Real(f)); }
int Characteristics(sqlite3_file* f) { return Methods(f)->xDeviceCharacteristics(Real(f)); }
int ShmMap(sqlite3_file* f, int page, int size, int extend, void volatile** out) {
  return Methods(f)->xShmMap(Real(f), page, size, extend, out);
}
int ShmLock(sqlite3_file* f, int offset, int n, int flags) {
  return Methods(f)->xShmLock(Real(f), offset, n, flags);
}
void ShmBarrier(sqlite3_file* f) { Methods(f)->xShmBarrier(Real(f)); }
int ShmUnmap(sqlite3_file* f, int remove) { return Methods(f)->xShmUnmap(Real(f), remove); }

const sqlite3_io_methods kMethods = {
    2,        Close,         Read,        Write,      Truncate,        Sync,   FileSize, Lock,
    Unlock,   CheckReserved, FileControl, SectorSize, Characteristics, ShmMap, ShmLock,  ShmBarrier,
    ShmUnmap, nullptr,       nullptr};

sqlite3_vfs* default_vfs = nullptr;

int Open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  file->pMethods = nullptr;
  if (plan.deny_logs && (flags & SQLITE_OPEN_WAL) != 0) return SQLITE_CANTOPEN;
  const int rc = default_vfs->xOpen(default_vfs, name, Real(file), flags, out_flags);
  if (Real(file)->pMethods != nullptr) file->pMethods = &kMethods;
  return rc;
}

}  // namespace

void FaultVfs::Register() {
  if (default_vfs != nullptr) return;
  default_vfs = sqlite3_vfs_find(nullptr);
  // Everything but opening files is the default VFS's.
  static sqlite3_vfs vfs = *default_vfs;
  vfs.zName = kName;
  vfs.szOsFile = static_cast<int>(sizeof(FaultFile)) + default_vfs->szOsFile;
  vfs.pNext = nullptr;
  vfs.xOpen = Open;
  sqlite3_vfs_register(&vfs, /*makeDflt=*/0);
}

void FaultVfs::Arm(int nth, bool persistent, FaultKind kind) {
  plan = Plan{.nth = nth, .persistent = persistent, .kind = kind, .deny_logs = plan.deny_logs};
}
void FaultVfs::Disarm() { plan.nth = 0; }
int FaultVfs::operations() { return plan.operations; }
bool FaultVfs::fired() { return plan.fired; }
void FaultVfs::DenyLogs(bool deny) { plan.deny_logs = deny; }

}  // namespace tilewright
