#!/usr/bin/env bash
# Which parameters of the strategies were tried, and how the defaults in search/strategies.cc were chosen: on recorded
# spaces, by search_parameters, with one kernel left out at a time.
#
#   bench/search_parameters.sh build/dev FILE… >results
#
# SETTINGS (60) and SEEDS (100) are taken from the environment; the guided strategy, whose run costs a third of a second, has a sixth of
# the settings and a quarter of the seeds.
set -euo pipefail
build=${1:?build directory}
shift
: "${1:?recorded spaces}"

vary() {  # strategy, then the values of its parameters
  local strategy=$1
  shift
  printf '== %s\n' "$strategy"
  "$build/bench/search_parameters" "$strategy" "${SETTINGS:-60}" "${SEEDS:-100}" "${files[@]}" -- "$@"
}

files=("$@")
vary annealing initial=1,8,16,32,48 chains=1,2,4 temperature=0.05,0.1,0.2,0.4 cooling=0.9,0.95,0.98,0.99 patience=8,16,32,48
vary genetic initial=16,24,32,48 population=4,6,8,12,16 tournament=2,3,4,6 mutation=0.1,0.2,0.3,0.5,0.8
vary differential population=8,12,16,24,32 factor=0.3,0.5,0.8,1 crossover=0.3,0.5,0.7,0.9 greed=0,0.3,0.6,1
vary ils initial=16,24,32,48 tries=12,24,40,80 kick=1,2,3 elite=2,4,8,12 tolerance=1,1.05,1.1,1.2
SETTINGS=$((${SETTINGS:-60} / 6)) SEEDS=$((${SEEDS:-100} / 4)) vary evolutionary initial=6,8,12,16 random_share=0.03,0.08,0.15 \
  model_share=0.1,0.2,0.4 replan=0.03,0.0625 elite=8,12,20 fresh=256,512,1024
