// A Connection is one SQLite connection with what every use of it needs: prepared statements by
// text, transactions that join, and the translation of SQLite's errors. For db/ alone.
//
// SQLiteCpp throws; every function that runs SQL runs it inside Guard(), so no exception leaves
// this folder. Not thread-safe.
#ifndef TILEWRIGHT_DB_CONNECTION_H_
#define TILEWRIGHT_DB_CONNECTION_H_

#include <SQLiteCpp/SQLiteCpp.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include "absl/strings/string_view.h"

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/rows.h"

namespace tilewright {

// The Status that a SQLite failure means; `what` says which action on which file.
absl::Status StatusFromSqlite(const SQLite::Exception& error, absl::string_view what);

// A prepared statement on loan: parameters are bound in order, columns read in order, reset when it
// goes.
class Query {
 public:
  Query(SQLite::Statement* statement) : statement_(statement) {}
  Query(Query&& other) noexcept
      : statement_(std::exchange(other.statement_, nullptr)),
        bound_(other.bound_),
        column_(other.column_) {}
  Query& operator=(Query&&) = delete;
  ~Query();

  Query& Bind(int64_t value);
  Query& Bind(double value);
  Query& Bind(absl::string_view text);
  Query& Bind(const Id& id);
  Query& BindBlob(absl::string_view bytes);
  Query& BindNull();
  // The text, or NULL if it is empty.
  Query& BindTextOrNull(absl::string_view text);
  template <typename T>
  Query& Bind(const std::optional<T>& value) {
    return value.has_value() ? Bind(*value) : BindNull();
  }

  // Steps to the next row; false after the last.
  bool Next();
  // For statements without rows. Returns how many rows changed.
  int Run();

  // Columns of the current row, left to right.
  int64_t Int64();
  double Double();
  std::string Text();  // "" for NULL
  std::string Blob();
  std::optional<int64_t> OptionalInt64();
  std::optional<double> OptionalDouble();
  // A blob that is not an id reads as zeros: the schema's CHECK keeps such rows out.
  Id ReadId();
  std::optional<Id> OptionalId();

 private:
  SQLite::Statement* statement_;
  int bound_ = 0;
  int column_ = 0;
};

class Connection {
 public:
  // `name` is what messages call the file.
  Connection(std::unique_ptr<SQLite::Database> database, std::string name, bool writable)
      : database_(std::move(database)), name_(std::move(name)), writable_(writable) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  SQLite::Database& database() { return *database_; }
  const std::string& name() const { return name_; }
  bool writable() const { return writable_; }

  // Prepared once per text and kept. One loan of a text at a time.
  Query Prepare(const std::string& sql);

  // Runs `body` (returning Status or StatusOr), turning SQLite's exceptions into its failure.
  template <typename Body>
  auto Guard(absl::string_view what, Body&& body) -> decltype(body()) {
    try {
      return body();
    } catch (const SQLite::Exception& error) {
      return StatusFromSqlite(error, what.empty() ? name_ : std::string(what) + " in " + name_);
    }
  }

  // See Database::Transaction. DataLoss if the file is no longer at its path.
  absl::Status Transaction(absl::FunctionRef<absl::Status()> body);

  // Guard, with all statements of `body` seeing one state of the file. Only for reading.
  template <typename Body>
  auto Snapshot(absl::string_view what, Body&& body) -> decltype(body()) {
    return Guard(what, [&] {
      const ReadScope scope(*this);
      return body();
    });
  }

 private:
  class ReadScope {
   public:
    explicit ReadScope(Connection& connection);
    ~ReadScope();

   private:
    Connection& connection_;
    const bool outermost_;
  };

  // A deleted file takes what is written to it along, without an error of the system's.
  absl::Status CheckInPlace();

  std::unique_ptr<SQLite::Database> database_;
  std::string name_;
  bool writable_;
  bool in_transaction_ = false;
  absl::Status inner_failure_;  // of a transaction that joined; the outer one must not commit
  std::unordered_map<std::string, std::unique_ptr<SQLite::Statement>> statements_;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_DB_CONNECTION_H_
