CREATE TABLE origin(
  row INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE CHECK(name <> '')
) STRICT;
CREATE TABLE self(
  row INTEGER PRIMARY KEY CHECK(row = 1),
  origin INTEGER NOT NULL REFERENCES origin(row)
) STRICT;
CREATE TABLE workload(
  row INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE CHECK(key <> ''),
  canonical_version INTEGER NOT NULL,
  canonical_text TEXT NOT NULL
) STRICT;
CREATE TABLE workload_source(
  row INTEGER PRIMARY KEY,
  workload INTEGER NOT NULL REFERENCES workload(row),
  name TEXT NOT NULL,
  source TEXT NOT NULL,
  sizes TEXT NOT NULL,
  types TEXT NOT NULL,
  names TEXT NOT NULL,
  UNIQUE(workload, name, source, sizes, types, names)
) STRICT;
CREATE INDEX workload_source_by_name ON workload_source(name);
CREATE TABLE target(
  row INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE CHECK(key <> ''),
  kind TEXT NOT NULL,
  text TEXT NOT NULL
) STRICT;
CREATE INDEX target_by_kind ON target(kind);
CREATE TABLE regime(
  row INTEGER PRIMARY KEY,
  text TEXT NOT NULL UNIQUE
) STRICT;
CREATE TABLE environment(
  row INTEGER PRIMARY KEY,
  device_uuid TEXT NOT NULL,
  driver TEXT NOT NULL,
  toolchain TEXT NOT NULL,
  timer TEXT NOT NULL,
  procedure TEXT NOT NULL,
  UNIQUE(device_uuid, driver, toolchain, timer, procedure)
) STRICT;
CREATE TABLE run(
  row INTEGER PRIMARY KEY,
  id BLOB NOT NULL UNIQUE CHECK(length(id) = 16),
  job TEXT NOT NULL,
  target INTEGER NOT NULL REFERENCES target(row),
  regime INTEGER NOT NULL REFERENCES regime(row),
  seed INTEGER NOT NULL,
  options TEXT,
  toolchain TEXT NOT NULL,
  highest_trial_row INTEGER NOT NULL,
  state TEXT NOT NULL CHECK(state IN ('running', 'finished', 'interrupted', 'paused', 'failed')),
  started_unix_ns INTEGER NOT NULL,
  ended_unix_ns INTEGER,
  origin INTEGER NOT NULL REFERENCES origin(row)
) STRICT;
CREATE INDEX run_by_job ON run(job);
CREATE TABLE run_workload(
  run INTEGER NOT NULL REFERENCES run(row),
  ordinal INTEGER NOT NULL,
  workload INTEGER NOT NULL REFERENCES workload(row),
  weight REAL NOT NULL CHECK(weight > 0),
  anchor_schedule TEXT NOT NULL,
  starts TEXT NOT NULL,
  PRIMARY KEY(run, ordinal),
  UNIQUE(run, workload)
) STRICT, WITHOUT ROWID;
CREATE TABLE proposal(
  run INTEGER NOT NULL REFERENCES run(row),
  sequence INTEGER NOT NULL,
  workload INTEGER NOT NULL REFERENCES workload(row),
  results_seen INTEGER NOT NULL CHECK(results_seen >= 0),
  trained_on INTEGER NOT NULL CHECK(trained_on BETWEEN 0 AND results_seen),
  schedules TEXT NOT NULL,
  created_unix_ns INTEGER NOT NULL,
  PRIMARY KEY(run, sequence)
) STRICT, WITHOUT ROWID;
CREATE TABLE session(
  row INTEGER PRIMARY KEY,
  id BLOB NOT NULL UNIQUE CHECK(length(id) = 16),
  run INTEGER NOT NULL REFERENCES run(row),
  environment INTEGER NOT NULL REFERENCES environment(row),
  enrolment_epoch INTEGER NOT NULL,
  started_unix_ns INTEGER NOT NULL,
  origin INTEGER NOT NULL REFERENCES origin(row)
) STRICT;
CREATE INDEX session_by_run ON session(run);
CREATE TABLE anchor_time(
  session INTEGER NOT NULL REFERENCES session(row),
  workload INTEGER NOT NULL REFERENCES workload(row),
  ordinal INTEGER NOT NULL,
  seconds REAL NOT NULL CHECK(seconds > 0),
  PRIMARY KEY(session, workload, ordinal)
) STRICT, WITHOUT ROWID;
CREATE TABLE trial(
  row INTEGER PRIMARY KEY,
  id BLOB NOT NULL UNIQUE CHECK(length(id) = 16),
  run INTEGER NOT NULL REFERENCES run(row),
  ordinal INTEGER NOT NULL,
  workload INTEGER NOT NULL REFERENCES workload(row),
  target INTEGER NOT NULL REFERENCES target(row),
  regime INTEGER NOT NULL REFERENCES regime(row),
  schedule TEXT NOT NULL CHECK(schedule <> ''),
  seconds REAL CHECK(seconds > 0),
  failure_kind TEXT CHECK(failure_kind <> ''),
  failure_message TEXT,
  anchor_seconds REAL CHECK(anchor_seconds > 0),
  session INTEGER REFERENCES session(row),
  build_ns INTEGER,
  ir_digest TEXT,
  binary_digest TEXT,
  resources TEXT,
  same_as BLOB CHECK(length(same_as) = 16),
  created_unix_ns INTEGER NOT NULL,
  origin INTEGER NOT NULL REFERENCES origin(row),
  CHECK((seconds IS NULL) = (failure_kind IS NOT NULL)),
  CHECK((failure_kind IS NULL) = (failure_message IS NULL)),
  UNIQUE(run, workload, schedule),
  UNIQUE(run, ordinal)
) STRICT;
CREATE INDEX trial_by_subject ON trial(workload, target, regime);
CREATE TRIGGER trial_is_append_only
BEFORE UPDATE OF id, run, ordinal, schedule, seconds, failure_kind, failure_message ON trial
BEGIN
  SELECT RAISE(ABORT, 'trials are append-only');
END;
CREATE TABLE trial_samples(
  trial INTEGER PRIMARY KEY REFERENCES trial(row),
  samples BLOB NOT NULL
) STRICT;
CREATE TABLE late_trial(
  row INTEGER PRIMARY KEY,
  id BLOB NOT NULL UNIQUE CHECK(length(id) = 16),
  run INTEGER NOT NULL REFERENCES run(row),
  workload INTEGER NOT NULL REFERENCES workload(row),
  target INTEGER NOT NULL REFERENCES target(row),
  regime INTEGER NOT NULL REFERENCES regime(row),
  schedule TEXT NOT NULL CHECK(schedule <> ''),
  seconds REAL CHECK(seconds > 0),
  failure_kind TEXT CHECK(failure_kind <> ''),
  failure_message TEXT,
  anchor_seconds REAL CHECK(anchor_seconds > 0),
  session INTEGER REFERENCES session(row),
  build_ns INTEGER,
  ir_digest TEXT,
  binary_digest TEXT,
  resources TEXT,
  same_as BLOB CHECK(length(same_as) = 16),
  created_unix_ns INTEGER NOT NULL,
  origin INTEGER NOT NULL REFERENCES origin(row),
  reason TEXT NOT NULL CHECK(reason <> ''),
  samples BLOB,
  CHECK((seconds IS NULL) = (failure_kind IS NOT NULL)),
  CHECK((failure_kind IS NULL) = (failure_message IS NULL))
) STRICT;
CREATE INDEX late_trial_by_run ON late_trial(run);
CREATE TABLE session_best(
  workload INTEGER NOT NULL REFERENCES workload(row),
  target INTEGER NOT NULL REFERENCES target(row),
  regime INTEGER NOT NULL REFERENCES regime(row),
  session INTEGER NOT NULL REFERENCES session(row),
  measured INTEGER NOT NULL,
  trial INTEGER NOT NULL REFERENCES trial(row),
  seconds REAL NOT NULL,
  PRIMARY KEY(workload, target, regime, session)
) STRICT, WITHOUT ROWID;
CREATE TABLE verdict(
  row INTEGER PRIMARY KEY,
  id BLOB NOT NULL UNIQUE CHECK(length(id) = 16),
  workload INTEGER NOT NULL REFERENCES workload(row),
  target INTEGER NOT NULL REFERENCES target(row),
  regime INTEGER NOT NULL REFERENCES regime(row),
  winner_schedule TEXT NOT NULL CHECK(winner_schedule <> ''),
  winner_ir_digest TEXT NOT NULL,
  winner_binary_digest TEXT NOT NULL,
  rival_schedule TEXT NOT NULL,
  outcome TEXT NOT NULL CHECK(outcome IN ('faster', 'slower', 'tie')),
  ratio REAL NOT NULL CHECK(ratio > 0),
  ratio_low REAL NOT NULL CHECK(ratio_low > 0),
  ratio_high REAL NOT NULL CHECK(ratio_high >= ratio_low),
  winner_seconds REAL CHECK(winner_seconds > 0),
  rival_seconds REAL CHECK(rival_seconds > 0),
  default_seconds REAL CHECK(default_seconds > 0),
  library_seconds REAL CHECK(library_seconds > 0),
  limit_seconds REAL CHECK(limit_seconds > 0),
  bound_seconds REAL CHECK(bound_seconds > 0),
  environment INTEGER NOT NULL REFERENCES environment(row),
  check_evidence TEXT,
  rounds BLOB,
  created_unix_ns INTEGER NOT NULL,
  origin INTEGER NOT NULL REFERENCES origin(row)
) STRICT;
CREATE INDEX verdict_by_subject ON verdict(workload, target, regime);
CREATE TABLE verdict_replaces(
  verdict INTEGER NOT NULL REFERENCES verdict(row),
  replaced BLOB NOT NULL CHECK(length(replaced) = 16),
  PRIMARY KEY(verdict, replaced)
) STRICT, WITHOUT ROWID;
CREATE INDEX verdict_replaces_by_replaced ON verdict_replaces(replaced);
CREATE TABLE current_verdict(
  workload INTEGER NOT NULL REFERENCES workload(row),
  target INTEGER NOT NULL REFERENCES target(row),
  regime INTEGER NOT NULL REFERENCES regime(row),
  verdict INTEGER NOT NULL UNIQUE REFERENCES verdict(row),
  PRIMARY KEY(workload, target, regime, verdict)
) STRICT, WITHOUT ROWID;
CREATE TABLE evaluation(
  row INTEGER PRIMARY KEY,
  id BLOB NOT NULL UNIQUE CHECK(length(id) = 16),
  run INTEGER NOT NULL REFERENCES run(row),
  model TEXT NOT NULL,
  results_seen INTEGER NOT NULL,
  trained_on INTEGER NOT NULL,
  figures TEXT,
  created_unix_ns INTEGER NOT NULL,
  origin INTEGER NOT NULL REFERENCES origin(row)
) STRICT;
CREATE INDEX evaluation_by_run ON evaluation(run);
CREATE TABLE generation(
  generation INTEGER PRIMARY KEY,
  started_unix_ns INTEGER NOT NULL
) STRICT;
