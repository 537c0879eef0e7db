// The schema of the tuning log, as the list of migrations that build it.
//
// A file says which schema it has in `user_version`, and that it is ours in `application_id`. To
// change the schema, add a row to Migrations(), a golden file tests/golden/schema_vN.sql and a line
// in docs/formats/database.md; a released row never changes.
#ifndef TILEWRIGHT_DB_SCHEMA_H_
#define TILEWRIGHT_DB_SCHEMA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "db/connection.h"

namespace tilewright {

// "TWLG" in bytes 68..71 of the file.
inline constexpr int32_t kApplicationId = 0x54574c47;

struct Migration {
  int version;      // user_version afterwards; rows count 1, 2, 3, …
  const char* sql;  // from the version before
};

absl::Span<const Migration> Migrations();
// The version this program writes: the last row's.
int SchemaVersion();

// Brings a file from its user_version to the last row's: each row and its version in one
// transaction, so that a crash leaves one version or the next.
absl::Status Migrate(Connection& connection, absl::Span<const Migration> migrations);

}  // namespace tilewright

#endif  // TILEWRIGHT_DB_SCHEMA_H_
