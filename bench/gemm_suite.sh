#!/bin/sh
# The GEMM suite on a machine with an NVIDIA GPU, from the bundle: what is claimed of speed and of quality of the search, each part under
# a time limit of its own, with what a part left behind kept if it is cut short.
#
#   bench/gemm_suite.sh [PART ...] --shapes FILE.csv [--bundle FILE] [--out DIR] [--log FILE] [--rounds N]
#                       [--trials N] [--triton FILE.py]
#
# Parts, all by default:
#   plain dependent   the shapes of the file (name,m,n,k,…) against the library's best algorithm, in both regimes
#   random            forty other shapes, `--effort quick`
#   converge          six shapes from nothing: how soon a run comes near its best
#   types             six shapes in f16 and e4m3
#   fused             gelu of a linear layer against the library's fused epilogue, and against torch.compile
#   triton            the program given as --triton, which gets the file of shapes
# DIR receives for each part PART.json (reports of `tune --json`), PART.err and PART.md (its table), and log.jsonl, the log as exported,
# which --log goes on from. All tables are printed at the end.
# --rounds: that decide in `plain` (10); the other parts, whose claims are means, have six. Idles are 200 ms, in `random` 100 ms.
# --trials: screened for each shape (32), but in `random` (48) and `converge`.
# Seconds for each part: $PLAIN_SECONDS … (below). A shape took 10.5 s with ten rounds and 48 trials, about 7 with six and 32; a part
# that runs out of its seconds keeps the shapes that are done. Without `converge` and `triton` all parts together want some 850 s.
set -eu
here=$(cd "$(dirname "$0")" && pwd)

out=suite-out shapes= bundle= log= rounds=10 trials=32 triton= parts=
while [ $# -gt 0 ]; do
  case $1 in
    --bundle) bundle=$2; shift ;;
    --out) out=$2; shift ;;
    --log) log=$2; shift ;;
    --shapes) shapes=$2; shift ;;
    --rounds) rounds=$2; shift ;;
    --trials) trials=$2; shift ;;
    --triton) triton=$2; shift ;;
    plain | dependent | random | converge | types | fused | triton) parts="$parts $1" ;;
    *) echo "gemm_suite.sh: '$1' is neither a part (plain, dependent, random, converge, types, fused, triton) nor a flag" >&2; exit 2 ;;
  esac
  shift
done
[ -n "$parts" ] || parts="plain dependent random converge types fused triton"
[ -r "$shapes" ] || { echo "gemm_suite.sh: --shapes names no file of shapes" >&2; exit 2; }

mkdir -p "$out"
PATH=$("$here/../scripts/gpu" unpack ${bundle:+--bundle "$bundle"}):$PATH
export PATH
db=$out/suite.db
[ -z "$log" ] || [ -e "$db" ] || tilewright log import "$log" --db "$db"

# Six shapes for what takes longer: squares, prefill, decode, and one that nothing divides.
six() { grep -E '^(sq4096|sq1024|l8_qkv_p4096|l70tp8_o_p2048|l8_o_d16|odd_prime),' "$shapes"; }

# Shapes are compared with each other, so none gets another's trials.
equal_shares='--floor 1000000'
# tune PART SECONDS FLAG ...: tunes PART.tw. SIGTERM ends a search with the best so far.
tune() {
  part=$1 seconds=$2
  shift 2
  # shellcheck disable=SC2086
  timeout -k 20 "$((seconds + 10))" tilewright tune --workloads "$out/$part.tw" --target cuda --db "$db" --json \
    --time-limit "${seconds}s" $equal_shares "$@" >"$out/$part.json" 2>"$out/$part.err" || echo "$part: tune ended with $?" >>"$out/$part.err"
}
table() { gemm_suite table "$out/$1.tw" "$out/$1.json" ${2:+"$2"} >"$out/$1.md" 2>&1 || true; }

for part in $parts; do
  began=$(date +%s)
  case $part in
    plain)
      gemm_suite shapes "$shapes" >"$out/plain.tw"
      tune plain "${PLAIN_SECONDS:-350}" --effort claim --rounds "$rounds" --trials "$trials"
      table plain
      ;;
    dependent)
      gemm_suite shapes "$shapes" >"$out/dependent.tw"
      tune dependent "${DEPENDENT_SECONDS:-240}" --effort claim --rounds 6 --trials "$trials" --regime chain=dependent
      table dependent
      ;;
    random)
      gemm_suite random 20261130 40 >"$out/random.tw"
      tune random "${RANDOM_SECONDS:-250}" --effort quick
      table random
      ;;
    converge)
      six >"$out/six.csv"
      gemm_suite shapes "$out/six.csv" >"$out/converge.tw"
      rm -f "$out"/converge.db*
      # shellcheck disable=SC2086
      timeout -k 20 "$((${CONVERGE_SECONDS:-180} + 20))" tilewright tune --workloads "$out/converge.tw" --target cuda --db "$out/converge.db" \
        --json --time-limit "${CONVERGE_SECONDS:-180}s" --trials 4000 $equal_shares --no-finals >"$out/converge.json" 2>"$out/converge.err" || true
      tilewright log export "$out/converge.jsonl" --db "$out/converge.db" --no-samples 2>>"$out/converge.err" || true
      gemm_suite converge "$out/converge.tw" "$out/converge.jsonl" >"$out/converge.md" 2>&1 || true
      rm -f "$out"/converge.db*
      ;;
    types)
      six >"$out/six.csv"
      { gemm_suite shapes "$out/six.csv" f16 | sed 's/ x1/_f16 x1/'
        gemm_suite shapes "$out/six.csv" e4m3,C:bf16 | sed 's/ x1/_e4m3 x1/'; } >"$out/types.tw"
      tune types "${TYPES_SECONDS:-95}" --effort claim --rounds 6 --trials "$trials"
      table types
      ;;
    fused)
      : >"$out/fused.tw"
      for size in '4096 4096 4096' '1024 4096 1024'; do
        # shellcheck disable=SC2086
        set -- $size
        echo "gelu_${1}_${2}_${3} 'C[m,n] = gelu(sum(k: A[m,k] * B[n,k]) + bias[n])' m=$1 n=$2 k=$3 bf16" >>"$out/fused.tw"
      done
      tune fused "${FUSED_SECONDS:-35}" --effort claim --rounds 6 --trials "$trials"
      table fused
      if python3 -c 'import torch' 2>/dev/null; then
        timeout -k 10 "${TORCH_SECONDS:-60}" python3 "$here/../examples/pytorch/time_fused.py" "$out/fused.tw" >"$out/torch.md" 2>"$out/torch.err" || true
      fi
      ;;
    triton)
      [ -n "$triton" ] || continue
      timeout -k 10 "${TRITON_SECONDS:-240}" python3 "$triton" "$shapes" >"$out/triton.md" 2>"$out/triton.err" || true
      ;;
  esac
  echo "$part: $(($(date +%s) - began)) s" | tee -a "$out/times.txt"
done
tilewright log export "$out/log.jsonl" --db "$db" || true

for part in $parts; do
  case $part in
    plain) name=plain.md; if [ -e "$out/dependent.json" ]; then table plain "$out/dependent.json"; fi ;;
    dependent) name=; [ -e "$out/plain.json" ] || name=dependent.md ;;
    fused) name="fused.md torch.md" ;;
    *) name=$part.md ;;
  esac
  for file in $name; do
    if [ -e "$out/$file" ]; then printf '\n== %s\n' "${file%.md}"; cat "$out/$file"; fi
  done
  if [ -s "$out/$part.err" ]; then grep -vE '^ *$|screening|finals|starting' "$out/$part.err" | tail -n 3 || true; fi
done
