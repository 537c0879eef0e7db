#include "db/database_file.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "db/schema.h"

namespace tilewright {
namespace {

// File systems that other machines may have mounted too, by statfs(2)'s f_type.
struct FileSystemRow {
  int64_t type;
  absl::string_view name;
};
constexpr FileSystemRow kNetworkFileSystems[] = {
    {0x6969, "NFS"},        {0x517b, "SMB"},        {0xff534d42, "CIFS"},  {0xfe534d42, "SMB2"},
    {0x0bd00bd0, "Lustre"}, {0x19830326, "BeeGFS"}, {0x47504653, "GPFS"},  {0x5346414f, "AFS"},
    {0x6b414653, "kAFS"},   {0x73757245, "Coda"},   {0x00c36400, "Ceph"},  {0x7461636f, "OCFS2"},
    {0x01161970, "GFS2"},   {0x01021997, "9P"},     {0xaad7aaea, "PanFS"}, {0x20030528, "OrangeFS"},
    {0x013111a8, "IBRIX"},  {0x786f4256, "vboxsf"}, {0x564c, "NCP"},
};
constexpr int64_t kFuse = 0x65735546;
// FUSE file systems that live on this machine; any other may be remote (sshfs, GlusterFS, a host's
// shared folder).
constexpr absl::string_view kLocalFuse[] = {"fuse.fuse-overlayfs", "fuseblk", "fuse.ext4",
                                            "fuse.mergerfs"};

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// The type of the mount that holds `path`: the longest mount point that is a prefix
// (/proc/self/mountinfo, proc(5)).
std::string MountType(const std::string& path) {
  std::ifstream mounts("/proc/self/mountinfo");
  std::string line, best_type;
  size_t best_length = 0;
  while (std::getline(mounts, line)) {
    const std::vector<std::string> halves = absl::StrSplit(line, " - ");
    if (halves.size() != 2) continue;
    const std::vector<std::string> fields = absl::StrSplit(halves[0], ' ');
    if (fields.size() < 5) continue;
    const std::string& point = fields[4];
    const bool holds =
        point == "/" || path == point || absl::StartsWith(path, absl::StrCat(point, "/"));
    if (holds && point.size() >= best_length) {
      best_length = point.size();
      best_type = halves[1].substr(0, halves[1].find(' '));
    }
  }
  return best_type;
}

uint32_t BigEndian32(const unsigned char* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
}

absl::Status Refuse(const std::string& path, absl::string_view why, absl::string_view accepted) {
  return absl::FailedPreconditionError(absl::StrCat(path, ": ", why, "; ", accepted));
}

// The first 100 bytes of an SQLite file (https://www.sqlite.org/fileformat.html, section 1.3).
absl::Status CheckHeaderBytes(const std::string& path, const unsigned char* header,
                              const FileFacts& facts) {
  if (std::memcmp(header, "SQLite format 3", 16) != 0) {
    return Refuse(path, "not an SQLite database",
                  "expected a Tilewright tuning log or a path where there is no file");
  }
  const uint32_t application_id = BigEndian32(header + 68);
  if (application_id != kApplicationId) {
    return Refuse(
        path,
        absl::StrCat("a database of another program (application_id 0x", absl::Hex(application_id),
                     ")"),
        absl::StrCat("a Tilewright tuning log has application_id 0x", absl::Hex(kApplicationId)));
  }
  const uint32_t version = BigEndian32(header + 60);
  if (version > static_cast<uint32_t>(SchemaVersion())) {
    return Refuse(path,
                  absl::StrCat("written by a newer Tilewright (schema version ", version, ")"),
                  absl::StrCat("this one reads versions 1 to ", SchemaVersion()));
  }
  int64_t page_bytes = int64_t{header[16]} << 8 | header[17];
  if (page_bytes == 1) page_bytes = 65536;
  // The count is only valid if the two change counters agree.
  const bool count_valid = BigEndian32(header + 24) == BigEndian32(header + 92);
  const int64_t pages = BigEndian32(header + 28);
  if (!facts.has_log && count_valid && facts.size_bytes < pages * page_bytes) {
    return Refuse(path,
                  absl::StrCat("truncated: ", facts.size_bytes, " bytes where its header counts ",
                               pages, " pages of ", page_bytes, " bytes"),
                  "restore a backup, or recover what is left into a new file with `sqlite3 FILE "
                  ".recover` (Debian 12: "
                  "`.dump`)");
  }
  return absl::OkStatus();
}

void SetLimits(sqlite3* handle, bool writable) {
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, 256 << 20);
  sqlite3_limit(handle, SQLITE_LIMIT_SQL_LENGTH, 1 << 20);
  sqlite3_limit(handle, SQLITE_LIMIT_ATTACHED, writable ? 1 : 0);  // VACUUM attaches its copy
}

// SQLite's name of a file that nobody writes and that has no log: no locks, no -shm file.
std::string ImmutableUri(const std::string& path) {
  std::string uri = "file:";
  for (const char c : path) {
    if (c == '%' || c == '?' || c == '#') {
      absl::StrAppend(&uri, "%", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
    } else {
      uri += c;
    }
  }
  return uri + "?mode=ro&immutable=1";
}

}  // namespace

absl::StatusOr<std::string> ResolvePath(const std::string& path) {
  if (path.empty())
    return absl::InvalidArgumentError("database path is empty; expected the name of a file");
  char resolved[PATH_MAX];
  if (realpath(path.c_str(), resolved) != nullptr) return std::string(resolved);
  const std::string directory = DirectoryOf(path);
  if (realpath(directory.c_str(), resolved) == nullptr) {
    return absl::NotFoundError(
        absl::StrCat(path, ": no directory ", directory, " (", std::strerror(errno), ")"));
  }
  const std::string base = path.substr(path.rfind('/') + 1);
  if (base.empty())
    return absl::InvalidArgumentError(absl::StrCat(path, ": expected the name of a file"));
  return absl::StrCat(absl::string_view(resolved) == "/" ? "" : resolved, "/", base);
}

absl::string_view NetworkFileSystem(int64_t type, absl::string_view mount_type) {
  if (type == kFuse) {
    for (const absl::string_view local : kLocalFuse) {
      if (mount_type == local) return "";
    }
    return "FUSE";
  }
  for (const FileSystemRow& row : kNetworkFileSystems) {
    if (row.type == type) return row.name;
  }
  return "";
}

absl::Status CheckFileSystem(const std::string& path) {
  const std::string directory = DirectoryOf(path);
  struct statfs facts;
  if (statfs(directory.c_str(), &facts) != 0) {
    return absl::UnavailableError(absl::StrCat(path, ": statfs failed: ", std::strerror(errno)));
  }
  const int64_t type = static_cast<int64_t>(facts.f_type) & 0xffffffff;
  const std::string mount_type = type == kFuse ? MountType(directory) : "";
  const absl::string_view name = NetworkFileSystem(type, mount_type);
  if (name.empty()) return absl::OkStatus();
  return Refuse(path,
                absl::StrCat("on a network file system (", name, mount_type.empty() ? "" : " ",
                             mount_type, ")"),
                "SQLite's locks are not safe there: use a local disk, and `log backup` or `log "
                "export` to share");
}

absl::StatusOr<FileFacts> CheckHeader(const std::string& path, const DatabaseOptions& options) {
  struct stat file;
  if (stat(path.c_str(), &file) != 0) {
    if (errno == ENOENT) return absl::NotFoundError(absl::StrCat(path, ": no such file"));
    return Refuse(path, std::strerror(errno), "expected a readable file");
  }
  if (!S_ISREG(file.st_mode))
    return Refuse(path, "not a regular file", "expected a Tilewright tuning log");
  struct stat log;
  FileFacts facts;
  facts.size_bytes = file.st_size;
  facts.has_log = stat(absl::StrCat(path, "-wal").c_str(), &log) == 0 && log.st_size > 0;
  if (facts.size_bytes == 0) {
    return Refuse(path, "empty (0 bytes), which a tuning log never is",
                  "remove the file to start a new log, or restore a backup");
  }
  unsigned char header[100] = {};
  try {
    SQLite::Database probe(path, SQLite::OPEN_READONLY, options.busy_timeout_ms, options.vfs);
    sqlite3_file* opened = nullptr;
    sqlite3_file_control(probe.getHandle(), "main", SQLITE_FCNTL_FILE_POINTER, &opened);
    if (opened == nullptr || opened->pMethods == nullptr ||
        opened->pMethods->xRead(opened, header, sizeof(header), 0) != SQLITE_OK) {
      return Refuse(path, absl::StrCat("not an SQLite database (", facts.size_bytes, " bytes)"),
                    "expected a Tilewright tuning log or a path where there is no file");
    }
  } catch (const SQLite::Exception& error) {
    return Refuse(path, error.what(), "expected a readable Tilewright tuning log");
  }
  absl::Status status = CheckHeaderBytes(path, header, facts);
  if (!status.ok()) return status;
  return facts;
}

absl::StatusOr<std::unique_ptr<WriterLock>> WriterLock::Acquire(const std::string& path) {
  const std::string lock_path = absl::StrCat(path, ".lock");
  const int descriptor = open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (descriptor < 0) {
    return Refuse(
        path, absl::StrCat("cannot be locked for writing: ", lock_path, ": ", std::strerror(errno)),
        "a writer needs a writable directory");
  }
  auto lock = std::unique_ptr<WriterLock>(new WriterLock(descriptor));
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    char holder[32] = {};
    const ssize_t length = pread(descriptor, holder, sizeof(holder) - 1, 0);
    const std::string by =
        length > 0 ? absl::StrCat(" by process ", absl::string_view(holder, length)) : "";
    return Refuse(path, absl::StrCat("already open for writing", by),
                  "end that process first; `best`, `query` and `log export` work beside it");
  }
  const std::string self = absl::StrCat(getpid());
  if (ftruncate(descriptor, 0) != 0 || pwrite(descriptor, self.data(), self.size(), 0) < 0) {
    // The lock holds without its holder's name, which only words the message above.
  }
  return lock;
}

WriterLock::~WriterLock() { close(descriptor_); }

absl::Status CreateDatabase(const std::string& path, const DatabaseOptions& options) {
  const std::string temporary = absl::StrCat(path, ".creating");
  for (const char* suffix : {"", "-journal", "-wal", "-shm"})
    unlink(absl::StrCat(temporary, suffix).c_str());
  absl::Status status;
  try {
    auto database =
        std::make_unique<SQLite::Database>(temporary, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE,
                                           options.busy_timeout_ms, options.vfs);
    database->exec(absl::StrCat("PRAGMA application_id = ", kApplicationId));
    database->exec("PRAGMA synchronous = FULL");
    Connection connection(std::move(database), path, /*writable=*/true);
    status = Migrate(connection, Migrations());
    if (status.ok()) {
      status = connection.Transaction([&] {
        const std::string origin = options.origin.empty() ? Id::Random().ToHex() : options.origin;
        connection.Prepare("INSERT INTO origin(row, name) VALUES(1, ?)")
            .Bind(absl::string_view(origin))
            .Run();
        connection.Prepare("INSERT INTO self(row, origin) VALUES(1, 1)").Run();
        return absl::OkStatus();
      });
    }
    // Stays in the file: every later connection opens it in this mode.
    if (status.ok()) connection.database().exec("PRAGMA journal_mode = WAL");
  } catch (const SQLite::Exception& error) {
    status = StatusFromSqlite(error, absl::StrCat("creating ", path));
  }
  if (status.ok() &&
      renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) != 0) {
    status = absl::UnavailableError(absl::StrCat("creating ", path, ": ", std::strerror(errno)));
  }
  if (!status.ok()) {
    for (const char* suffix : {"", "-journal", "-wal", "-shm"})
      unlink(absl::StrCat(temporary, suffix).c_str());
    return status;
  }
  const int directory = open(DirectoryOf(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool durable = directory >= 0 && fsync(directory) == 0;
  if (directory >= 0) close(directory);
  if (!durable)
    return absl::UnavailableError(absl::StrCat("creating ", path, ": ", std::strerror(errno)));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Connection>> Connect(const std::string& path, bool writable,
                                                    const DatabaseOptions& options) {
  auto open_as = [&](const std::string& name,
                     int flags) -> absl::StatusOr<std::unique_ptr<Connection>> {
    try {
      auto database =
          std::make_unique<SQLite::Database>(name, flags, options.busy_timeout_ms, options.vfs);
      SetLimits(database->getHandle(), writable);
      database->exec("PRAGMA foreign_keys = ON");
      database->exec("PRAGMA cell_size_check = ON");
      database->exec("PRAGMA mmap_size = 0");
      database->exec("PRAGMA temp_store = MEMORY");
      database->exec(writable ? "PRAGMA cache_size = -65536" : "PRAGMA cache_size = -16384");
      if (!writable) database->exec("PRAGMA query_only = ON");
      if (writable) {
        const std::string mode = database->execAndGet("PRAGMA journal_mode = WAL").getString();
        if (mode != "wal")
          return Refuse(path, absl::StrCat("journal mode is ", mode), "expected wal");
        database->exec("PRAGMA synchronous = FULL");
        database->exec("PRAGMA journal_size_limit = 67108864");
      }
      // The header in the main file may be older than the one in the -wal file.
      const int application_id = database->execAndGet("PRAGMA application_id").getInt();
      const int version = database->execAndGet("PRAGMA user_version").getInt();
      if (application_id != kApplicationId || version > SchemaVersion()) {
        return Refuse(path,
                      absl::StrCat("application_id ", application_id, ", schema version ", version),
                      absl::StrCat("expected ", kApplicationId, " and at most ", SchemaVersion()));
      }
      return std::make_unique<Connection>(std::move(database), path, writable);
    } catch (const SQLite::Exception& error) {
      return StatusFromSqlite(error, absl::StrCat("opening ", path));
    }
  };
  if (writable) return open_as(path, SQLite::OPEN_READWRITE);
  auto reader = open_as(path, SQLite::OPEN_READONLY);
  if (reader.ok()) return reader;
  // A directory in which we may not create the -shm file. Without a log no writer is at work and
  // the file is all there is.
  struct stat log;
  const bool has_log = stat(absl::StrCat(path, "-wal").c_str(), &log) == 0 && log.st_size > 0;
  const bool cannot_share =
      absl::IsUnavailable(reader.status()) || absl::IsFailedPrecondition(reader.status());
  if (has_log || !cannot_share) return reader;
  auto snapshot = open_as(ImmutableUri(path), SQLite::OPEN_READONLY | SQLite::OPEN_URI);
  return snapshot.ok() ? std::move(snapshot) : std::move(reader);
}

}  // namespace tilewright
