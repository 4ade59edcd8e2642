"""Records what PyTorch's operators read and write, and for how long they run, in a few steps of a training run:

    python3 bench/accesses.py NAME TRACE.csv.gz [--deterministic]

A trace begins with what is live after two steps, and tells of the next four; deterministic: of the kernels that
`pytorch_swap.py --deterministic` runs. Frozen weights are said to have a copy on the host. Prints the unrecorded step's
time and the peak. Needs the package of examples/pytorch, a GPU, and what workloads.py needs.
"""

import argparse
import json
import os
import statistics
import sys
import time

WARM, RECORDED, TIMED = 2, 4, 5


def timed(step):
    import torch

    torch.cuda.synchronize()
    began = time.perf_counter()
    step()
    torch.cuda.synchronize()
    return time.perf_counter() - began


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("name")
    options.add_argument("trace")
    options.add_argument("--deterministic", action="store_true")
    given = options.parse_args()
    if not os.access(os.path.dirname(given.trace) or ".", os.W_OK):
        options.error(f"{given.trace} can't be written")
    import gmlake

    gmlake.enable(plan="off")
    import torch
    from programs import ONLY_WARN, PROGRAMS

    if given.name not in PROGRAMS:
        options.error(f"there is no program {given.name}; there are {', '.join(PROGRAMS)}")
    if given.deterministic:
        os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"  # read when cuBLAS is first used
        torch.use_deterministic_algorithms(True, warn_only=given.name in ONLY_WARN)
    torch.manual_seed(0)
    step, frozen = PROGRAMS[given.name]()
    for _ in range(WARM):
        step()
    plain = statistics.median(timed(step) for _ in range(TIMED))
    torch.cuda.reset_peak_memory_stats()
    with gmlake.record(given.trace):
        gmlake.frozen(*frozen)
        with gmlake.accesses(exact=True):
            for _ in range(RECORDED):
                torch.cuda.synchronize()
                with gmlake.step():
                    step()
    peak = torch.cuda.max_memory_allocated()
    print(json.dumps({"name": given.name, "step_ms": round(1e3 * plain, 2), "peak_mib": round(peak / 2**20, 1)}))


if __name__ == "__main__":
    sys.exit(main())
