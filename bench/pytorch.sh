#!/usr/bin/env bash
# Holds gmlake beside PyTorch's own allocators on the workloads of workloads.py and appends what comes of it:
#   bench/pytorch.sh RESULTS.jsonl repeated|two-gpus|once|gmlake|capped|calls|swap|jobs|accesses NAME…
# repeated: five runs under each allocator, in turn. two-gpus: the same of two ranks, a process and a GPU each. once: one
# run under each. gmlake: one under gmlake alone. capped: under gmlake, at most 1.03 times what the results say the workload
# requests. calls: the time of torch.empty and its free (no names). swap: the programs of programs.py within 0.65 of their
# peak. jobs: three of them at once, and a guest (no names). accesses: their access traces, into bench/traces/accesses.
# Builds the adapter.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
results=$1 mode=$2
shift 2

build=build/pytorch
cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=Release -DGMLAKE_BUILD_TESTS=OFF -DGMLAKE_BUILD_BENCH=OFF >/dev/null
cmake --build $build --target gmlake-torch >/dev/null
export PYTHONPATH=$PWD/$build/python${PYTHONPATH:+:$PYTHONPATH}

requested() { # the workload's peak requested, GiB times 1.03, from the results so far
  python3 - "$results" "$1" <<'PYTHON'
import json, sys
peaks = [r["requested_mib"] for r in map(json.loads, open(sys.argv[1])) if r["name"] == sys.argv[2] and r.get("requested_mib")]
print(f"{1.03 * max(peaks) / 1024:.4f}")
PYTHON
}

if [[ $mode == calls ]]; then python3 bench/pytorch_calls.py --json "$results"; fi
if [[ $mode == jobs ]]; then python3 bench/pytorch_jobs.py --guest resnet50-changing:8 | tee -a "$results"; fi
for name in "$@"; do
  case $mode in
    swap) python3 bench/pytorch_swap.py "$name" --deterministic | tee -a "$results" ;;
    accesses) python3 bench/accesses.py "$name" "bench/traces/accesses/$name.csv.gz" | tee -a "$results" ;;
    repeated) python3 bench/compare.py --runs 5 --timeout 150 --json "$results" --name "$name" -- python3 bench/workloads.py "$name" ;;
    two-gpus)
      # shellcheck disable=SC2016  # expanded by each rank, which sees its own GPU alone
      rank='CUDA_VISIBLE_DEVICES=$LOCAL_RANK LOCAL_RANK=0 exec python3 bench/workloads.py "$0"'
      python3 bench/compare.py --runs 5 --timeout 150 --json "$results" --name "$name, two GPUs" -- \
        python3 -m torch.distributed.run --standalone --no-python --nproc-per-node 2 bash -c "$rank" "$name"
      ;;
    once) python3 bench/compare.py --runs 1 --timeout 150 --json "$results" --name "$name" -- python3 bench/workloads.py "$name" ;;
    gmlake) python3 bench/compare.py --runs 1 --allocators gmlake --timeout 150 --json "$results" --name "$name" -- python3 bench/workloads.py "$name" ;;
    capped)
      CAP_GIB=$(requested "$name") python3 bench/compare.py --runs 1 --allocators gmlake --timeout 150 --json "$results" \
        --name "$name at 1.03" -- python3 bench/workloads.py "$name"
      ;;
  esac
done
