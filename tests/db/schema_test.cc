#include "db/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "golden.h"
#include "sample_rows.h"

namespace tilewright {
namespace {

// The statements that make up a file's schema, in their order.
std::string DumpSchema(SQLite::Database& database) {
  std::string dump;
  SQLite::Statement rows(database,
                         "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid");
  while (rows.executeStep()) dump += rows.getColumn(0).getString() + ";\n";
  return dump;
}

TEST(Schema, OfANewFileIsTheGoldenOne) {
  TestDirectory directory;
  std::unique_ptr<Database> database = OpenWorld(directory.File("a.db"));
  ExpectGolden("schema_v1.sql", DumpSchema(database->connection().database()));
}

TEST(Schema, OfVersion1KeepsOpening) {
  TestDirectory directory;
  {
    SQLite::Database file(directory.File("a.db"), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    file.exec(ReadGolden("schema_v1.sql"));
    file.exec("INSERT INTO origin VALUES(1, 'test'); INSERT INTO self VALUES(1, 1)");
    file.exec("PRAGMA application_id = 0x54574c47; PRAGMA user_version = 1");
  }
  std::unique_ptr<Database> database = OpenWorld(directory.File("a.db"));
  ASSERT_TRUE(database->CommitTrials({SampleTrial(10, "tiled{a=1}", 1e-3)}).ok());
  EXPECT_TRUE(database->Best(kMatmulKey, kTargetKey, kRegime).ok());
}

TEST(Schema, SaysWhoseAndOfWhichVersionTheFileIs) {
  TestDirectory directory;
  std::unique_ptr<Database> database = OpenWorld(directory.File("a.db"));
  SQLite::Database& file = database->connection().database();
  EXPECT_EQ(file.execAndGet("PRAGMA application_id").getInt(), kApplicationId);
  EXPECT_EQ(file.execAndGet("PRAGMA user_version").getInt(), SchemaVersion());
  EXPECT_EQ(file.execAndGet("PRAGMA journal_mode").getString(), "wal");
  EXPECT_EQ(file.execAndGet("PRAGMA synchronous").getInt(), 2);
  EXPECT_EQ(file.execAndGet("PRAGMA foreign_keys").getInt(), 1);
  EXPECT_EQ(
      file.execAndGet("SELECT count(*) FROM pragma_table_list WHERE schema = 'main' AND strict = 0 "
                      "AND name NOT LIKE 'sqlite_%'")
          .getInt(),
      0);
}

TEST(Schema, KeepsTrialsAsTheyWereWritten) {
  TestDirectory directory;
  std::unique_ptr<Database> database = OpenWorld(directory.File("a.db"));
  ASSERT_TRUE(database->CommitTrials({SampleTrial(10, "tiled{a=1}", 1e-3)}).ok());
  EXPECT_THROW(database->connection().database().exec("UPDATE trial SET seconds = 1e-9"),
               SQLite::Exception);
}

TEST(Migrations, RunInOrderAndOnce) {
  Connection connection(
      std::make_unique<SQLite::Database>(":memory:", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE),
      "memory", true);
  const Migration two[] = {{1, "CREATE TABLE a(x)"}, {2, "CREATE TABLE b(x)"}};
  const Migration three[] = {two[0], two[1], {3, "CREATE TABLE c(x); INSERT INTO c VALUES(1)"}};
  ASSERT_TRUE(Migrate(connection, two).ok());
  ASSERT_TRUE(Migrate(connection, three).ok());
  ASSERT_TRUE(Migrate(connection, three).ok());
  EXPECT_EQ(connection.database().execAndGet("SELECT count(*) FROM c").getInt(), 1);
  EXPECT_EQ(connection.database().execAndGet("PRAGMA user_version").getInt(), 3);
}

TEST(Migrations, ThatFailLeaveTheVersionBefore) {
  Connection connection(
      std::make_unique<SQLite::Database>(":memory:", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE),
      "memory", true);
  const Migration bad[] = {{1, "CREATE TABLE a(x)"}, {2, "CREATE TABLE b(x); CREATE TABLE a(y)"}};
  EXPECT_FALSE(Migrate(connection, bad).ok());
  EXPECT_EQ(connection.database().execAndGet("PRAGMA user_version").getInt(), 1);
  EXPECT_FALSE(connection.database().tableExists("b"));
}

}  // namespace
}  // namespace tilewright
