// The rows of the tuning log, as plain values.
//
// The database knows no other folder: a workload, target, schedule or regime is its canonical text,
// a digest is hexadecimal text, and whoever reads a row parses it (a text that does not parse is a
// miss with a warning, never a crash).
//
// Times of kernels are in seconds, points in time in nanoseconds since the Unix epoch. What may be
// missing is optional; no value stands for "missing". Fields that say "assigned" are filled by the
// database and ignored when a row is written.
#ifndef TILEWRIGHT_DB_ROWS_H_
#define TILEWRIGHT_DB_ROWS_H_

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace tilewright {

// A name that no two records in the world share: 16 random bytes. Merging logs is idempotent
// because of it.
struct Id {
  std::array<uint8_t, 16> bytes{};

  // From the kernel's random source.
  static Id Random();
  // Reads 32 hexadecimal digits. InvalidArgument otherwise.
  static absl::StatusOr<Id> FromHex(std::string_view hex);
  std::string ToHex() const;  // 32 lower-case digits
  auto operator<=>(const Id&) const = default;

  template <typename H>
  friend H AbslHashValue(H state, const Id& id) {
    return H::combine(std::move(state), id.bytes);
  }
};

// A workload, as one user typed it. Identity is `key`; the same key may be stored under several
// names and sources.
struct WorkloadRow {
  std::string key;  // digest of the canonical text
  std::string canonical_text;
  int canonical_version = 0;
  // As typed. `name` is the name in a workload file ("qkv"); empty when the user gave none.
  std::string name;
  std::string source;      // the expression or the operator's call
  std::string sizes;       // "t=1..8192 i=4096"
  std::string types;       // "bf16,bias:f32"
  std::string names_json;  // the user's names of tensors and indices by canonical number; empty or
                           // a JSON text
  bool operator==(const WorkloadRow&) const = default;
};

struct TargetRow {
  std::string key;   // digest of the text
  std::string kind;  // "cuda:h200"
  std::string text;  // the kind with all its facts
  bool operator==(const TargetRow&) const = default;
};

// Where and how something was measured. Identity is the content.
struct EnvironmentRow {
  std::string device_uuid;
  std::string driver;
  std::string toolchain;  // toolchain id
  std::string timer;      // "cupti", "events", "steady_clock"
  std::string procedure;  // samples, warm-up, idle; free text
  bool operator==(const EnvironmentRow&) const = default;
};

// What a run decided about one of its workloads at its start; proposals are a function of it.
struct RunWorkload {
  std::string workload_key;
  double weight = 1;                // > 0
  std::string anchor_schedule;      // what the run's times are relative to
  std::vector<std::string> starts;  // the schedules the search begins from, in order
  bool operator==(const RunWorkload&) const = default;
};

// A job's part for one target and one regime.
struct RunRow {
  Id id;
  std::string job;  // id of the job; empty for a run of `tune`
  std::string target_key;
  std::string regime;
  uint64_t seed = 0;
  std::string options_json;       // budget, strategy and whatever else `--resume` needs
  std::string toolchain;          // the one toolchain id of the run
  int64_t highest_trial_row = 0;  // of the database at the start: what the search may learn from
  std::vector<RunWorkload> workloads;
  std::string state = "running";  // "running", "finished", "interrupted", "paused" or "failed"
  int64_t started_unix_ns = 0;
  std::optional<int64_t> ended_unix_ns;
  std::string
      origin;  // assigned unless the row is imported: the database that the record was born in
  bool operator==(const RunRow&) const = default;
};

struct SessionRow {
  Id id;
  Id run;
  EnvironmentRow environment;
  int64_t enrolment_epoch = 0;
  int64_t started_unix_ns = 0;
  std::string origin;  // as in RunRow
  bool operator==(const SessionRow&) const = default;
};

// One timing of the anchor in a session. Append-only, in the order in which they were taken.
struct AnchorTimeRow {
  Id session;
  std::string workload_key;
  int64_t ordinal = 0;  // assigned: 0, 1, … within session and workload
  double seconds = 0;
  bool operator==(const AnchorTimeRow&) const = default;
};

// One batch that the search proposed: a pure function of the run's start, the first `results_seen`
// results in commit order and the first `trained_on` of them. Logged before the batch is leased;
// `--resume` replays it.
struct ProposalRow {
  Id run;
  int64_t sequence = 0;  // assigned: 0, 1, … within the run
  std::string workload_key;
  int64_t results_seen = 0;
  int64_t trained_on = 0;  // <= results_seen
  std::vector<std::string> schedules;
  int64_t created_unix_ns = 0;
  bool operator==(const ProposalRow&) const = default;
};

// The samples of a trial. The three lists run in parallel; an empty list means that the fact could
// not be read.
struct Samples {
  enum Mark : uint8_t {
    kPowerCapped = 1,  // kept: drawing less power is a kernel's merit
    kDropped = 2,      // not in the median: a thermal or hardware violation, or too low a clock
  };
  std::vector<double> seconds;      // one call each
  std::vector<uint32_t> clock_mhz;  // empty or one per sample
  std::vector<uint8_t> marks;       // empty or one per sample: Mark bits
  bool operator==(const Samples&) const = default;
};

struct Failure {
  std::string kind;     // a failure kind's text: "wrong output"
  std::string message;  // what the compiler, the driver or the check said
  bool operator==(const Failure&) const = default;
};

// One candidate screened once: a time or a failure, never both. Append-only.
struct TrialRow {
  Id id;
  Id run;
  std::string workload_key;
  std::string target_key;
  std::string regime;
  std::string schedule;
  std::optional<double> seconds;  // median of the samples; present exactly if `failure` is not
  std::optional<Failure> failure;
  std::optional<double> anchor_seconds;  // the anchor in the same session
  std::optional<Id> session;             // absent if no session was open (a build that failed)
  std::optional<int64_t> build_ns;
  std::string ir_digest;  // of IR text and binary; empty if it was not built
  std::string binary_digest;
  std::string resources_json;  // registers, spills, shared memory as measured; empty or a JSON text
  std::optional<Id> same_as;   // the trial with the same binary whose time this is
  std::optional<Samples> samples;  // written with the row; read only by LoadSamples
  int64_t created_unix_ns = 0;
  std::string origin;  // as in RunRow

  // Writing: why the result must not count although it is the first (its enrolment was superseded);
  // it is stored as late. Reading late trials: why it came late.
  std::string late_reason;

  int64_t row = 0;      // assigned: grows with every commit to this database
  int64_t ordinal = 0;  // assigned: 0, 1, … in commit order within the run

  bool ok() const { return seconds.has_value(); }
  bool operator==(const TrialRow&) const = default;
};

// What became of a committed result.
enum class Committed {
  kFirst,      // it is the trial
  kLate,       // stored as late, never ranked: another result of this candidate came first, or
               // late_reason was given
  kDuplicate,  // this id was committed before (its acknowledgement was lost); nothing was written
};

// The times of the finals: column c of round r is seconds[r * schedules.size() + c].
struct Rounds {
  std::vector<std::string> schedules;  // and, where it ran, the library's name
  std::vector<double> seconds;
  bool operator==(const Rounds&) const = default;
};

// The outcome of paired finals.
struct VerdictRow {
  Id id;
  std::string workload_key;
  std::string target_key;
  std::string regime;
  std::string winner_schedule;
  std::string winner_ir_digest;
  std::string winner_binary_digest;
  std::string rival_schedule;
  std::string outcome;  // of the winner against the rival: "faster", "slower" or "tie"
  double ratio = 1;     // rival's time / winner's, median of the paired ratios, and its interval
  double ratio_low = 1;
  double ratio_high = 1;
  std::optional<double> winner_seconds;
  std::optional<double> rival_seconds;
  std::optional<double> default_seconds;
  std::optional<double> library_seconds;
  std::optional<double> limit_seconds;
  std::optional<double> bound_seconds;
  EnvironmentRow environment;
  std::string check_json;        // evidence of the output check; empty or a JSON text
  std::optional<Rounds> rounds;  // read only by LoadRounds
  int64_t created_unix_ns = 0;
  std::string origin;        // as in RunRow
  std::vector<Id> replaces;  // the verdicts that are no longer current because of this one; they
                             // may be unknown here
  bool current = false;      // assigned: no verdict known here replaces it
  bool operator==(const VerdictRow&) const = default;
};

// How well a model predicted what came next.
struct EvaluationRow {
  Id id;
  Id run;
  std::string model;         // a row of the models' list
  int64_t results_seen = 0;  // results of the run when it was evaluated
  int64_t trained_on = 0;    // rows it was trained on
  std::string figures_json;  // {"spearman": 0.81, "top8_recall": 0.75}
  int64_t created_unix_ns = 0;
  std::string origin;  // as in RunRow
  bool operator==(const EvaluationRow&) const = default;
};

// Blobs carry a version byte, so that a later layout can stand beside this one. Decoding bytes that
// are damaged or of a newer version is DataLoss with the reason; nothing outside the bytes is read.
std::string EncodeSamples(const Samples& samples);
absl::StatusOr<Samples> DecodeSamples(std::string_view bytes);
std::string EncodeRounds(const Rounds& rounds);
absl::StatusOr<Rounds> DecodeRounds(std::string_view bytes);

}  // namespace tilewright

#endif  // TILEWRIGHT_DB_ROWS_H_
