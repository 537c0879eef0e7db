#!/usr/bin/env bash
# Does one search strategy beat another at a small budget? Tunes one workload with both, seed by seed, alternating, with nothing known and
# nothing proposed first (no default, no incumbent, an empty log). Then the schedules that the runs ended with, which each run chose by
# its own single readings, are all timed against each other in paired rounds, and only those times count. Prints the ratio of the
# times with its 95% interval (Student's t of the log ratios).
#
#   bench/strategies.sh build/dev evolutionary random 50 20 [operator [sizes [type]]]
#
# A ratio above 1 means that the first strategy found the faster schedule.
set -euo pipefail
build=${1:?build directory}
first=${2:?strategy} second=${3:?strategy} trials=${4:-50} seeds=${5:-20}
operator=${6:-matmul} sizes=${7:-m=1024,n=1024,k=1024} type=${8:-f32}
tilewright=$build/cli/tilewright rounds=12
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Prints the schedule that was fastest when the run screened it.
best_schedule() {  # strategy seed
  rm -f "$work"/log.db*
  "$tilewright" tune "$operator" --size "$sizes" --type "$type" --target cpu --db "$work/log.db" --strategy "$1" --seed "$2" \
    --trials "$trials" --no-starts --no-log --no-finals --json >"$work/report.json" 2>"$work/errors" ||
    { cat "$work/errors" >&2; return 1; }
  "$tilewright" query trials --db "$work/log.db" --state ok --limit 100000 --json |
    sed -n 's/.*"schedule":"\([^"]*\)".*"seconds":\([^,}]*\).*/\2\t\1/p' | sort -g | head -n 1 | cut -f 2
}

for seed in $(seq 1 "$seeds"); do
  if ((seed % 2)); then
    a=$(best_schedule "$first" "$seed") b=$(best_schedule "$second" "$seed")
  else
    b=$(best_schedule "$second" "$seed") a=$(best_schedule "$first" "$seed")
  fi
  printf '%s\n' "$a" "$b"
done >"$work/chosen"
# Twice the same schedule is timed once.
sort -u "$work/chosen" | "$build/bench/schedule_rounds" "$tilewright" "$operator" "$sizes" "$type" "$rounds" >"$work/times"

awk -F '\t' -v first="$first" -v second="$second" '
  NR == FNR {time[$2] = $1; next}
  FNR % 2 {a = time[$1]; next}
  {
    b = time[$1]
    x = log(b / a); n++; sum += x; squares += x * x; wins += x > 0; ties += x == 0
    printf "seed %d: %s %.4g ms  %s %.4g ms\n", n, first, a * 1e3, second, b * 1e3
  }
  END {
    # Two-sided 95% quantiles of Student t with n - 1 degrees of freedom, n = 2 … 30.
    split("12.706 4.303 3.182 2.776 2.571 2.447 2.365 2.306 2.262 2.228 2.201 2.179 2.160 2.145 2.131 2.120 2.110 2.101 2.093 " \
          "2.086 2.080 2.074 2.069 2.064 2.060 2.056 2.052 2.048 2.045", t, " ")
    mean = sum / n; sd = n > 1 ? sqrt((squares - n * mean * mean) / (n - 1)) : 0
    half = n > 1 ? (n <= 30 ? t[n - 1] : 1.96) * sd / sqrt(n) : 0
    printf "%s / %s at equal trials: %.3fx faster, 95%% interval %.3f-%.3f, better in %d of %d seeds, equal in %d\n", first, second,
           exp(mean), exp(mean - half), exp(mean + half), wins, n, ties
  }' "$work/times" "$work/chosen"
