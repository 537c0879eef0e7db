// From the log to a production build: which schedule a pack shall have for each workload, and
// whether it is exactly what was measured; and the proof that a record can be made again.
//
//   current verdict ─► else the nearest record that the model ranks no lower than the default ─►
//   else the default
//                      └──────────────────────── not exact: --strict fails
//                      ────────────────────────┘
//
// Not thread-safe: uses the log's connection.
#ifndef TILEWRIGHT_SEARCH_PRODUCTION_H_
#define TILEWRIGHT_SEARCH_PRODUCTION_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "codegen/pack.h"
#include "codegen/writer.h"
#include "db/database.h"
#include "schedule/target.h"
#include "search/tuner.h"

namespace tilewright {

struct ProductionOptions {
  std::string name;  // of the pack: an identifier, see CheckPackSymbol
  Target target;
  Catalogue catalogue;
  // Writes nothing unless every workload is exact: the one current verdict of its workload, target
  // and regime, decided here or in a trusted log, and the kernel has the digests that were
  // measured.
  bool strict = false;
  std::string reuse;  // an older pack whose unchanged entries are copied; empty: none
  // Origins of imported records whose verdicts count as exact beside the log's own.
  std::vector<std::string> trusted_origins;
};

// What became of one workload.
struct ProductionRow {
  std::string name;
  Schedule schedule;
  Provenance provenance;
  Digests digests;
  bool reused = false;
  std::string inexact;  // why it is not exact: one line; empty: it is
  // The library's time / the winner's, in the rounds that decided the verdict. A library's kernel
  // is never packed, however fast; absent: none competed.
  std::optional<double> against_library;
};

struct ProductionReport {
  std::vector<ProductionRow> rows;    // in the order of the tasks
  std::vector<std::string> warnings;  // records that were passed over and why
  bool written = false;               // false: strict, and some row is inexact
};

// The schedule for one task. `log` may be null: then the default. The error is the log's, or that
// no variant can write the workload.
struct PackChoice {
  PackItem item;
  std::string inexact;  // as above, before anything is built
  std::optional<double> against_library;
};
absl::StatusOr<PackChoice> ChooseForPack(Database* log, const TuneTask& task,
                                         const ProductionOptions& options,
                                         std::vector<std::string>* warnings);

// Chooses, builds and, unless `strict` forbids it, writes the pack to `directory`. InvalidArgument:
// a task without a name that can be a function, or twice the same; else as BuildPack and WritePack.
absl::StatusOr<ProductionReport> BuildProduction(Database* log, absl::Span<const TuneTask> tasks,
                                                 const ProductionOptions& options,
                                                 const std::string& directory);

// A record's kernel, written again.
struct ReplayReport {
  std::string record;  // "trial" or "verdict"
  Workload workload;
  Target target;
  Schedule schedule;
  std::string regime;
  std::string toolchain_then;  // empty if the record does not say
  std::string toolchain_now;
  Digests expected;  // empty fields: not recorded
  Digests got;
  bool same() const;  // at least one digest was recorded, and all that were are met
};

// Writes the schedule of a trial or a verdict (its winner) with this program. NotFound: there is no
// record `id`. Else the failure of reading the record or of WriteKernel. `dump_directory`: as
// WriteOptions.
absl::StatusOr<ReplayReport> Replay(Database& log, const Id& id, const Catalogue& catalogue,
                                    const std::string& dump_directory = "");

}  // namespace tilewright

#endif  // TILEWRIGHT_SEARCH_PRODUCTION_H_
