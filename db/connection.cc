#include "db/connection.h"

#include <sqlite3.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace tilewright {

absl::Status StatusFromSqlite(const SQLite::Exception& error, absl::string_view what) {
  const int extended = error.getExtendedErrorCode();
  const std::string message = absl::StrCat(what, ": ", error.what(), " (SQLite code ",
                                           std::max(extended, error.getErrorCode()), ")");
  switch (error.getErrorCode() & 0xff) {
    case SQLITE_FULL:
      return absl::ResourceExhaustedError(
          absl::StrCat(message, "; nothing was written, free disk space and try again"));
    case SQLITE_NOMEM:
    case SQLITE_TOOBIG:
      return absl::ResourceExhaustedError(message);
    case SQLITE_IOERR:
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_CANTOPEN:
    case SQLITE_PROTOCOL:
      return absl::UnavailableError(message);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::DataLossError(
          absl::StrCat(message, "; keep the file, stop writing and recover it into a new one"));
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
    case SQLITE_RANGE:
      return absl::InvalidArgumentError(message);
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return absl::FailedPreconditionError(message);
    case SQLITE_INTERRUPT:
      return absl::CancelledError(message);
    default:
      return absl::InternalError(message);
  }
}

Query::~Query() {
  if (statement_ == nullptr) return;
  statement_->tryReset();
  statement_->clearBindings();
}

Query& Query::Bind(int64_t value) {
  statement_->bind(++bound_, value);
  return *this;
}
Query& Query::Bind(double value) {
  statement_->bind(++bound_, value);
  return *this;
}
Query& Query::Bind(absl::string_view text) {
  statement_->bind(++bound_, std::string(text));
  return *this;
}
Query& Query::Bind(const Id& id) {
  statement_->bind(++bound_, static_cast<const void*>(id.bytes.data()),
                   static_cast<int>(id.bytes.size()));
  return *this;
}
Query& Query::BindBlob(absl::string_view bytes) {
  statement_->bind(++bound_, static_cast<const void*>(bytes.data()),
                   static_cast<int>(bytes.size()));
  return *this;
}
Query& Query::BindNull() {
  statement_->bind(++bound_);
  return *this;
}
Query& Query::BindTextOrNull(absl::string_view text) {
  return text.empty() ? BindNull() : Bind(text);
}

bool Query::Next() {
  column_ = 0;
  return statement_->executeStep();
}
int Query::Run() { return statement_->exec(); }

int64_t Query::Int64() { return statement_->getColumn(column_++).getInt64(); }
double Query::Double() { return statement_->getColumn(column_++).getDouble(); }
std::string Query::Text() { return statement_->getColumn(column_++).getString(); }
std::string Query::Blob() { return statement_->getColumn(column_++).getString(); }
std::optional<int64_t> Query::OptionalInt64() {
  const SQLite::Column column = statement_->getColumn(column_++);
  if (column.isNull()) return std::nullopt;
  return column.getInt64();
}
std::optional<double> Query::OptionalDouble() {
  const SQLite::Column column = statement_->getColumn(column_++);
  if (column.isNull()) return std::nullopt;
  return column.getDouble();
}
Id Query::ReadId() { return OptionalId().value_or(Id{}); }
std::optional<Id> Query::OptionalId() {
  const SQLite::Column column = statement_->getColumn(column_++);
  Id id;
  if (column.isNull() || column.getBytes() != static_cast<int>(id.bytes.size()))
    return std::nullopt;
  const auto* bytes = static_cast<const uint8_t*>(column.getBlob());
  std::copy(bytes, bytes + id.bytes.size(), id.bytes.begin());
  return id;
}

Query Connection::Prepare(const std::string& sql) {
  auto& statement = statements_[sql];
  if (statement == nullptr) statement = std::make_unique<SQLite::Statement>(*database_, sql);
  return Query(statement.get());
}

Connection::ReadScope::ReadScope(Connection& connection)
    : connection_(connection), outermost_(!connection.in_transaction_) {
  if (!outermost_) return;
  connection_.database_->exec("BEGIN");
  connection_.in_transaction_ = true;
}

Connection::ReadScope::~ReadScope() {
  if (!outermost_) return;
  connection_.in_transaction_ = false;
  connection_.database_->tryExec("ROLLBACK");  // nothing was written
}

absl::Status Connection::CheckInPlace() {
  int moved = 0;
  sqlite3_file_control(database_->getHandle(), "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  if (moved == 0) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(name_,
                   ": was deleted, moved or replaced while it was written; what it held is "
                   "where the file is now, and nothing more is written"));
}

absl::Status Connection::Transaction(absl::FunctionRef<absl::Status()> body) {
  if (in_transaction_) {
    absl::Status status = Guard("", [&] { return body(); });
    if (!status.ok()) inner_failure_.Update(status);
    return status;
  }
  // IMMEDIATE: a transaction that reads first and then cannot get the lock fails without the busy
  // handler.
  absl::Status begun = Guard("begin of a transaction", [&] {
    database_->exec(writable_ ? "BEGIN IMMEDIATE" : "BEGIN");
    return absl::OkStatus();
  });
  if (!begun.ok()) return begun;
  in_transaction_ = true;
  inner_failure_ = absl::OkStatus();
  absl::Status status = Guard("", [&] { return body(); });
  status.Update(inner_failure_);
  if (status.ok() && writable_) status = CheckInPlace();
  if (status.ok()) {
    status = Guard("commit", [&] {
      database_->exec("COMMIT");
      return absl::OkStatus();
    });
  }
  in_transaction_ = false;
  // A full disk or an I/O error may have rolled back already.
  if (!status.ok() && sqlite3_get_autocommit(database_->getHandle()) == 0) {
    database_->tryExec("ROLLBACK");
  }
  return status;
}

}  // namespace tilewright
