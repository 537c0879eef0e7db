#!/usr/bin/env bash
# Does one search strategy beat another at a small budget? Tunes one workload with both, seed by seed, alternating, with nothing known and
# nothing proposed first (no default, no incumbent, an empty log), and prints the ratio of the best costs found (each relative to
# its session's anchor) with its 95% interval (Student's t of the log ratios).
#
#   bench/strategies.sh build/dev/cli/tilewright evolutionary random 50 20 [operator [sizes]]
#
# A ratio above 1 means that the first strategy found the faster schedule.
set -euo pipefail
tilewright=${1:?path of tilewright}
first=${2:?strategy} second=${3:?strategy} trials=${4:-50} seeds=${5:-20}
operator=${6:-matmul} sizes=${7:-m=1024,n=1024,k=1024}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Prints the least seconds / anchor seconds of the run.
best_cost() {  # strategy seed
  rm -f "$work"/log.db*
  "$tilewright" tune "$operator" --size "$sizes" --type f32 --target cpu --db "$work/log.db" --strategy "$1" --seed "$2" \
    --trials "$trials" --no-starts --no-log --no-finals --json >"$work/report.json" 2>"$work/errors" ||
    { cat "$work/errors" >&2; return 1; }
  "$tilewright" query trials --db "$work/log.db" --state ok --limit 100000 --json |
    sed -n 's/.*"anchor_seconds":\([^,}]*\).*"seconds":\([^,}]*\).*/\2 \1/p' |
    awk '{c = $1 / $2} NR == 1 || c < best {best = c} END {print best}'
}

for seed in $(seq 1 "$seeds"); do
  if ((seed % 2)); then
    a=$(best_cost "$first" "$seed") b=$(best_cost "$second" "$seed")
  else
    b=$(best_cost "$second" "$seed") a=$(best_cost "$first" "$seed")
  fi
  echo "seed $seed: $first $a  $second $b"
done | tee "$work/costs" | awk -v first="$first" -v second="$second" '
  {print; x = log($6 / $4); n++; sum += x; squares += x * x; wins += x > 0}
  END {
    # Two-sided 95% quantiles of Student t with n - 1 degrees of freedom, n = 2 … 30.
    split("12.706 4.303 3.182 2.776 2.571 2.447 2.365 2.306 2.262 2.228 2.201 2.179 2.160 2.145 2.131 2.120 2.110 2.101 2.093 " \
          "2.086 2.080 2.074 2.069 2.064 2.060 2.056 2.052 2.048 2.045", t, " ")
    mean = sum / n; sd = n > 1 ? sqrt((squares - n * mean * mean) / (n - 1)) : 0
    half = n > 1 ? (n <= 30 ? t[n - 1] : 1.96) * sd / sqrt(n) : 0
    printf "%s / %s at equal trials: %.3fx faster, 95%% interval %.3f-%.3f, better in %d of %d seeds\n", first, second,
           exp(mean), exp(mean - half), exp(mean + half), wins, n
  }'
