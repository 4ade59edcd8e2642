"""What a training program takes when it is kept within a part of its own peak:

    python3 bench/pytorch_swap.py NAME [--share 0.65] [--steps 72] [--deterministic] [--profile FILE.json.gz]

Runs it twice, each time in a process of its own: without a limit, and inside `gmlake.swap` with that share of the first
run's peak of allocated bytes. A step is over when its loss has been read, as in a training loop: copies out that the
next step hides are still under way then. Prints one JSON object: the steps' times and losses of both, what no schedule
of the last step planned comes below on the link as measured (`bound_ms`; 0 where none meets the limit), and what gmlake
tells of the second, `each` being what a step of its last third adds. `--profile` also writes what PyTorch's profiler
sees of two more steps of the second, for pytorch_gaps.py. Needs the package of examples/pytorch, a GPU, and what
workloads.py needs.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time


def profiled(step, file):
    import torch

    # The device's side only, and long after the profiler has begun: that slows the host, and a program that swaps, for
    # some ten steps.
    when = torch.profiler.schedule(wait=0, warmup=14, active=2, repeat=1)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA], schedule=when) as profile:
        for _ in range(16):
            step()
            torch.cuda.synchronize()
            profile.step()
    profile.export_chrome_trace(file)


def run(name, steps, limit, deterministic, profile):
    import gmlake

    gmlake.enable(plan="off" if limit else "auto")
    import torch
    from programs import ONLY_WARN, PROGRAMS

    def figures():
        return {k: v for k, v in gmlake.stats(0).items() if k.startswith(("swap_", "page_", "driver", "stitch"))}

    torch.manual_seed(0)
    if deterministic:
        torch.use_deterministic_algorithms(True, warn_only=name in ONLY_WARN)
    with gmlake.swappable() if limit else contextlib.nullcontext():
        step, frozen = PROGRAMS[name]()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    times, losses = [], []
    with gmlake.swap(limit, frozen=frozen) if limit else contextlib.nullcontext():
        torch.cuda.reset_peak_memory_stats()
        for i in range(steps):
            if i == warm(steps):
                earlier = figures()
            began = time.perf_counter()
            losses.append(step().item())
            times.append(round(1e3 * (time.perf_counter() - began), 2))
        total = figures()
        each = {k: round((v - earlier[k]) / (steps - warm(steps))) for k, v in total.items()}
        peak = torch.cuda.max_memory_allocated()
        reserved = torch.cuda.max_memory_reserved()
        if profile:
            profiled(step, profile)
    return {"ms": times, "losses": losses, "peak": peak, "reserved": reserved, "figures": total, "each": each}


def warm(steps):
    """The steps after which the rest is taken: schedules are made meanwhile."""
    return steps * 2 // 3


def apart(given, limit):
    command = [sys.executable, __file__, given.name, "--steps", str(given.steps), "--run", str(limit)]
    environment = dict(os.environ, CUBLAS_WORKSPACE_CONFIG=":4096:8")
    said = subprocess.run(
        command
        + ["--deterministic"] * given.deterministic
        + (["--profile", given.profile] if given.profile and limit else []),
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(said.stdout.splitlines()[-1])


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("name")
    options.add_argument("--share", type=float, default=0.65)
    options.add_argument("--steps", type=int, default=72)
    options.add_argument("--deterministic", action="store_true")
    options.add_argument("--profile")
    options.add_argument("--run", type=int, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.run is not None:
        print(json.dumps(run(given.name, given.steps, given.run, given.deterministic, given.profile)))
        return
    free = apart(given, 0)
    limit = int(given.share * free["peak"])
    swapped = apart(given, limit)
    medians = [statistics.median(one["ms"][warm(given.steps) :]) for one in (free, swapped)]
    print(
        json.dumps(
            {
                "name": given.name,
                "share": given.share,
                "limit_mib": limit >> 20,
                "reserved_mib": swapped["reserved"] >> 20,
                "ms": medians[1],
                "unlimited_ms": medians[0],
                "ratio": round(medians[1] / medians[0], 3),
                "bound_ms": round(swapped["figures"].get("page_least_step_ns", 0) / 1e6, 1),
                "same_losses": free["losses"] == swapped["losses"],
                "all_ms": swapped["ms"],
                "figures": swapped["figures"],
                "each": swapped["each"],
            }
        ),
        flush=True,
    )


if __name__ == "__main__":
    main()
