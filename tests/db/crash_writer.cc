// The victim of crash_test.cc: commits batches of three trials for ever, and names each trial on
// its standard output once its commit was acknowledged. Arguments: the database.
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "db/database.h"
#include "sample_rows.h"

int main(int, char** arguments) {
  auto database = tilewright::Database::OpenWriter(arguments[1]);
  if (!database.ok() || !tilewright::WriteWorld(**database).ok()) {
    std::fprintf(stderr, "%s\n", database.status().ToString().c_str());
    return 1;
  }
  while (true) {
    std::vector<tilewright::TrialRow> batch(3, tilewright::SampleTrial(0, "", 1e-3));
    std::string acknowledgement;
    for (tilewright::TrialRow& trial : batch) {
      trial.id = tilewright::Id::Random();
      trial.schedule = "tiled{x=" + trial.id.ToHex() + "}";
      acknowledgement += trial.id.ToHex() + "\n";
    }
    if (!(*database)->CommitTrials(batch).ok()) return 2;
    if (write(STDOUT_FILENO, acknowledgement.data(), acknowledgement.size()) < 0) return 3;
  }
}
