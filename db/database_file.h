// What must be true of a file before the log opens it, and the lock that keeps a second writer
// away. For db/ alone.
//
// A file that is refused is left as it is, and no file appears beside it: its header is read
// through SQLite's VFS without a transaction. (A descriptor of our own would do harm: closing it
// drops the locks that this process holds on the file.)
#ifndef TILEWRIGHT_DB_DATABASE_FILE_H_
#define TILEWRIGHT_DB_DATABASE_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include "absl/strings/string_view.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/connection.h"
#include "db/database.h"

namespace tilewright {

// The absolute path without symbolic links, of a file that need not exist. NotFound if its
// directory does not exist.
absl::StatusOr<std::string> ResolvePath(const std::string& path);

// FailedPrecondition if the directory of `path` is on a file system whose locks and shared memory
// do not reach every machine that may open the file: SQLite's log would be corrupted there.
absl::Status CheckFileSystem(const std::string& path);
// The rule behind it: the name of a network file system by statfs's f_type and, where that is FUSE,
// the mount's type
// ("fuse.sshfs"); empty for a local one.
absl::string_view NetworkFileSystem(int64_t type, absl::string_view mount_type);

struct FileFacts {
  int64_t size_bytes = 0;
  bool has_log = false;  // a -wal file with content: a writer is at work, or one was killed
};

// Reads the header. NotFound: no file. FailedPrecondition: not SQLite's, not ours, of a newer
// version, empty or truncated.
//
// What is checked costs nothing at any size: SQLite's magic, application_id, user_version, and that
// the file holds as many pages as its header counts (not while a -wal file has content, which may
// hold the others). Damage inside pages shows when they are read, as DataLoss; the writer also runs
// `PRAGMA quick_check` where that is cheap or there is a reason to doubt.
absl::StatusOr<FileFacts> CheckHeader(const std::string& path, const DatabaseOptions& options);

// PATH.lock, held until destroyed. FailedPrecondition names the process that holds it. The file
// stays: deleting it could give two writers a lock each.
class WriterLock {
 public:
  static absl::StatusOr<std::unique_ptr<WriterLock>> Acquire(const std::string& path);
  ~WriterLock();
  WriterLock(const WriterLock&) = delete;
  WriterLock& operator=(const WriterLock&) = delete;

 private:
  explicit WriterLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

// Makes an empty log at `path`, under a temporary name until it is whole. Precondition: the lock is
// held.
absl::Status CreateDatabase(const std::string& path, const DatabaseOptions& options);

// Opens a file that CheckHeader passed and sets it up (modes, limits, foreign keys).
absl::StatusOr<std::unique_ptr<Connection>> Connect(const std::string& path, bool writable,
                                                    const DatabaseOptions& options);

}  // namespace tilewright

#endif  // TILEWRIGHT_DB_DATABASE_FILE_H_
