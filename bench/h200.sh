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

# A program a line of the result; what failed is shown in full.
status=0
run_tests() {
  local log=$work/tests.txt line
  if "$@" >"$log" 2>&1; then line=passed; else line=FAILED && status=1 && cat "$log" >&2; fi
  if grep -q 'skipped: ' "$log"; then line+=" ($(grep -m 1 -o 'skipped: .*' "$log"))"; fi
  echo "$(basename "$1") ${*:2}: $line; $(grep -o 'test cases:.*' "$log" || true)" | tee -a "$work/result.txt"
  { grep -o 'MESSAGE: .*' "$log" || true; } | sed 's/MESSAGE: /  /' | tee -a "$work/result.txt"
}

replay() { $build/bin/gmlake-replay --json --calls --preset lake "$@" "${traces[@]}"; }

{
  echo "Machine: $(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | paste -sd ';'), CUDA" \
    "$("${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" --version | sed -n 's/.*release \([0-9.]*\).*/\1/p')"
  echo "Commit: $commit"
  echo "Command: bench/h200.sh RESULT ${traces[*]##*/}"
  echo
} | tee "$work/result.txt"

run_tests $build/bin/gmlake-tests '--source-file=*cuda*'
for program in "${gpu_tests[@]}"; do run_tests "$build/bin/$program"; done

replay >"$work/sim.json"
replay --backend cuda >"$work/cuda.json" || status=1
started=$SECONDS
replay --backend cuda --verify >"$work/verify.json" || status=1
echo "Verified replays took $((SECONDS - started)) s" | tee -a "$work/result.txt"

python3 - "$work" >>"$work/result.txt" <<'TABLE'
"""The driver's time by kind: as modelled, as measured, and as measured again in the run that verified."""
import json, sys

def load(name):
    return {r["trace"]: r for r in map(json.loads, open(f"{sys.argv[1]}/{name}.json"))}

sim, cuda, verified = load("sim"), load("cuda"), load("verify")
print(f"\n{'trace':16} {'call':11} {'modelled':>8} {'':>10} {'measured':>8} {'':>10} {'':>9}")
print(f"{'':16} {'':11} {'calls':>8} {'ms':>10} {'calls':>8} {'ms':>10} {'ratio':>9}")
for name, model in sim.items():
    real = cuda[name]
    label = name
    for kind, count in [*model["driver_calls"].items(), ("all", sum(model["driver_calls"].values()))]:
        ms = model["driver_ms"] if kind == "all" else model["driver_call_ms"][kind]
        real_ms = real["driver_ms"] if kind == "all" else real["driver_call_ms"][kind]
        real_count = sum(real["driver_calls"].values()) if kind == "all" else real["driver_calls"][kind]
        ratio = f"{real_ms / ms:.2f}" if ms else "-"
        print(f"{label:16} {kind:11} {count:8} {ms:10.2f} {real_count:8} {real_ms:10.2f} {ratio:>9}")
        label = ""
print(f"\n{'trace':16} {'backend':8} {'ok':4} {'reserved MiB':>12} {'fragmentation':>13} {'ns an op':>9} {'driver ms':>10}")
for name in sim:
    for backend, runs in (("sim", sim), ("cuda", cuda), ("verified", verified)):
        r = runs[name]
        print(f"{name if backend == 'sim' else '':16} {backend:8} {'yes' if r['ok'] else 'NO':4} "
              f"{r['reserved_peak'] / 2**20:12.0f} {r['fragmentation']:13.2%} {r['ns_per_op']:9.0f} {r['driver_ms']:10.2f}")
TABLE

mkdir -p "$(dirname "$result")"
cp "$work/result.txt" "$result"
cat "$result"
exit $status
