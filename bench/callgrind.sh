#!/usr/bin/env bash
# Counts instructions with callgrind (Debian: valgrind): for a hot pair by live blocks, and for an operation of each
# trace. The counts are the same on every run of one binary, so that they can be compared from day to day.
#
#     bench/callgrind.sh [build folder] [trace...]       by default build/release and the shipped traces
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
program=${1:-build/release}/bin/gmlake-bench-instructions
traces=("${@:2}")
((${#traces[@]} > 0)) || traces=(bench/traces/*.csv.gz)

# per <what> <preset> <argument>: instructions for each pair or operation.
per() {
  local out operations
  out=$(mktemp)
  operations=$(valgrind --tool=callgrind --callgrind-out-file="$out" --collect-atstart=no \
    --toggle-collect='gmlake_counted_region' "$program" "$@" 2>"$out.log") || { cat "$out.log" >&2; exit 1; }
  awk -v n="$operations" '/^(summary|totals):/ { printf "%.1f", $2 / n; exit }' "$out"
  rm -f "$out" "$out.log"
}

row() { printf '%-24s' "$1"; shift; printf '%12s' "$@"; printf '\n'; }

echo "Instructions for a pair of deallocate and allocate, by live blocks (bench/hot_pair.cpp, bench/mixed.cpp)"
row "" 100 1000 10000 100000
for preset in lake tlsf gmlake pytorch expandable; do
  for kind in gap cut mixed; do
    counts=()
    for live in 100 1000 10000 100000; do
      # gmlake takes minutes to fill a large pool of mixed sizes
      if [[ "$preset $kind $live" == 'gmlake mixed 100000' ]]; then counts+=(-); continue; fi
      counts+=("$(per "$kind" "$preset" "$live")")
    done
    row "$preset, $kind" "${counts[@]}"
  done
done

echo
echo "Instructions for an operation of a trace, growth and stitches included"
row "trace" lake tlsf gmlake pytorch expandable
for trace in "${traces[@]}"; do
  name=${trace##*/}
  counts=()
  for preset in lake tlsf gmlake pytorch expandable; do counts+=("$(per replay $preset "$trace")"); done
  row "${name%%.csv*}" "${counts[@]}"
done
