#!/usr/bin/env bash
# On a machine with a GPU: builds, runs the tests that take one, replays traces on modelled and on real memory, and
# writes what came of it into RESULT. Built for one NVIDIA H200, whose costs the simulated backend models.
#
#     bench/h200.sh RESULT [TRACE...]
#
# Without traces: those in bench/traces. CMAKE_ARGS goes to CMake, COMMIT into the result where there is no git.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

result=$1
shift
traces=("$@")
((${#traces[@]} > 0)) || traces=(bench/traces/*.csv.gz)
build=build/h200
commit=${COMMIT:-$(git rev-parse --short HEAD)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# shellcheck disable=SC2086  # several arguments
cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=Release -DGMLAKE_BUILD_BENCH=OFF ${CMAKE_ARGS:-} >"$work/cmake.txt"
gpu_tests=()
for source in tests/gpu/*.cu; do gpu_tests+=("gmlake-gpu-$(basename "$source" .cu)"); done
cmake --build $build --target gmlake-tests gmlake-replay "${gpu_tests[@]}" >"$work/build.txt" ||
  { tail -n 40 "$work/build.txt" && exit 1; }

say() { tee -a "$work/result.txt"; }

# A program a line of the result; what failed is shown in full.
status=0
run_tests() {
  local log=$work/tests.txt line
  if "$@" >"$log" 2>&1; then line=passed; else line=FAILED && status=1 && cat "$log" >&2; fi
  if grep -q 'skipped: ' "$log"; then line+=" ($(grep -m 1 -o 'skipped: .*' "$log"))"; fi
  line+=$(sed -n 's/.*test cases: *\([0-9]*\).*/, \1 tests/p;s/.*assertions: *\([0-9]*\).*/, \1 checks/p' "$log" | tr -d '\n')
  { printf '%s: %s\n' "$(basename "$1")${2:+ ${*:2}}" "$line" && sed -n 's/.*MESSAGE: /  /p' "$log"; } | say
}

tool=$build/bin/gmlake-replay
replay() { "$tool" --json --calls "$@" || status=1; }

{
  echo "Machine: $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | sed 's/, /, driver /' | paste -sd ';'), CUDA" \
    "$("${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" --version | sed -n 's/.*release \([0-9.]*\).*/\1/p')"
  echo "Commit: $commit"
  echo "Command: bench/h200.sh RESULT ${traces[*]##*/}"
  echo
} | say

run_tests $build/bin/gmlake-tests '--source-file=*cuda*'
for program in "${gpu_tests[@]}"; do run_tests "$build/bin/$program"; done

presets=(--preset lake --preset gmlake)
replay "${presets[@]}" "${traces[@]}" >"$work/sim.json"
replay "${presets[@]}" --backend cuda "${traces[@]}" >"$work/cuda.json"
started=$SECONDS
replay "${presets[@]}" --backend cuda --verify "${traces[@]}" >"$work/again.json"
echo "Replays with every block verified took $((SECONDS - started)) s" | say
# Short of memory, PyTorch's rules give some back: that tells what unmapping and releasing cost.
for trace in "${traces[@]}"; do
  limit=$("$tool" --json --min-limit --preset pytorch "$trace" | sed 's/.*"min_limit":\([0-9]*\).*/\1/')
  for backend in sim cuda; do
    replay --backend $backend --preset pytorch --limit "$limit" "$trace" >>"$work/$backend.json"
  done
done

python3 - "$work" <<'TABLE' | say
"""The driver's time by kind of call, as modelled and as measured; and what came of each replay."""
import json, sys

def load(name):
    return {(r["trace"], r["preset"]): r for r in map(json.loads, open(f"{sys.argv[1]}/{name}.json"))}

def lines(r):
    for kind, calls in r["driver_calls"].items():
        yield kind, calls, r["driver_call_ms"][kind]
    yield "all", sum(r["driver_calls"].values()), r["driver_ms"]

sim, cuda, again = load("sim"), load("cuda"), load("again")
print(f"\n{'':42} modelled{'':21} measured\n{'trace':16} {'preset':8} {'call':11}" +
      2 * f"{'calls':>7} {'ms':>9} {'us a call':>10}  " + f"{'ratio':>5}")
for key, model in sim.items():
    names = f"{key[0]:16} {key[1]:8}"
    for (kind, *modelled), (_, *measured) in zip(lines(model), lines(cuda[key])):
        if modelled[0] == measured[0] == 0:
            continue
        cells = "".join(f"{n:7} {ms:9.2f} {1000 * ms / max(n, 1):10.2f}  " for n, ms in (modelled, measured))
        print(f"{names:25} {kind:11}{cells}{measured[1] / modelled[1] if modelled[1] else 0:5.2f}")
        names = ""
print(f"\n{'trace':16} {'preset':8} {'backend':9} {'ok':3} {'reserved MiB':>12} {'fragmentation':>13} {'ns an op':>9} {'driver ms':>10}")
for key, model in sim.items():
    for backend, r in (("sim", model), ("cuda", cuda[key]), ("verified", again.get(key))):
        if r:
            names = f"{key[0]:16} {key[1]:8}" if r is model else ""
            print(f"{names:25} {backend:9} {'yes' if r['ok'] else 'NO':3} {r['reserved_peak'] / 2**20:12.0f} "
                  f"{r['fragmentation']:13.2%} {r['ns_per_op']:9.0f} {r['driver_ms']:10.2f}")
TABLE

mkdir -p "$(dirname "$result")"
cp "$work/result.txt" "$result"
exit $status
