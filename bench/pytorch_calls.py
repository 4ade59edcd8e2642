#!/usr/bin/env python3
"""The time of torch.empty of a CUDA tensor and its free, from Python, under PyTorch's allocator and gmlake's levels.

    python3 bench/pytorch_calls.py [--rounds N] [--json FILE]

Each round starts a process for each of native, full, plain and list (`support/free_list.cpp`: the least that can stand
where plain does) at once, each on a core of its own, and lets all of them begin together; from round to round they
change cores. A process runs nine times 30,000 pairs of two sizes. What is printed is the median of the rounds' ratios
to native, and its 95% interval (bootstrap); and the least that any process took, which is the figure to read where the
cores are shared with others' work: that makes a pair longer, never shorter. Takes c++, a GPU and as many cores as
allocators. `--table FILE` only prints such a file.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

ALLOCATORS = ("native", "full", "plain", "list")
SIZES = {"4 KB": 1000, "4 MiB": 1 << 20}  # elements of four bytes
PAIRS = 30_000
REPEATS = 9
RESAMPLES = 2000
SUPPORT = pathlib.Path(__file__).parent / "support"


def measure(allocator: str) -> None:
    """One process: gets ready, waits for a line on standard input, prints the microseconds of each repeat's pair."""
    import torch

    if allocator == "list":
        library = os.environ["FREE_LIST"]
        chosen = torch.cuda.memory.CUDAPluggableAllocator(library, "free_list_malloc", "free_list_free")
        torch.cuda.memory.change_current_allocator(chosen)
    elif allocator != "native":
        import gmlake

        gmlake.enable(level=allocator)
    torch.zeros(1, device="cuda")
    print("ready", flush=True)
    sys.stdin.readline()
    times: dict[str, list[float]] = {}
    for name, elements in SIZES.items():
        times[name] = []
        for _ in range(REPEATS):
            began = time.perf_counter()
            for _ in range(PAIRS):
                torch.empty(elements, device="cuda")
            times[name].append(round((time.perf_counter() - began) / PAIRS * 1e6, 4))
    print(json.dumps(times), flush=True)


def one_round(number: int, library: str) -> dict[str, dict[str, list[float]]]:
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < len(ALLOCATORS):
        raise SystemExit(f"{len(ALLOCATORS)} cores are needed; there are {len(cores)}")
    spread = cores[:: len(cores) // len(ALLOCATORS)]
    children = {}
    for i, allocator in enumerate(ALLOCATORS):
        core = spread[(i + number) % len(ALLOCATORS)]
        children[allocator] = subprocess.Popen(
            ["taskset", "-c", str(core), sys.executable, __file__, "--measure", allocator],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"FREE_LIST": library},
        )
    for allocator, child in children.items():
        if child.stdout.readline().strip() != "ready":
            raise SystemExit(f"{allocator}: could not begin")
    for child in children.values():
        child.stdin.write("go\n")
        child.stdin.flush()
    return {allocator: json.loads(child.communicate()[0]) for allocator, child in children.items()}


def interval(values: list[float]) -> tuple[float, float]:
    draw = random.Random(1)
    again = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(RESAMPLES))
    return again[RESAMPLES // 40], again[-1 - RESAMPLES // 40]


def report(rounds: list[dict[str, dict[str, list[float]]]]) -> None:
    for size in SIZES:
        for allocator in ALLOCATORS:
            medians = [statistics.median(r[allocator][size]) for r in rounds]
            ratios = [m / statistics.median(r["native"][size]) for m, r in zip(medians, rounds, strict=True)]
            low, high = interval(ratios)
            least = min(min(r[allocator][size]) for r in rounds)
            of_native = least / min(min(r["native"][size]) for r in rounds)
            print(
                f"{size:>6}  {allocator:<6}  median {statistics.median(medians):.3f} us, "
                f"{statistics.median(ratios):.3f} [{low:.3f}, {high:.3f}] of native  "
                f"least {least:.3f} us, {of_native:.3f} of native"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=8, metavar="N", help="default: 8")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="append a line a round to this file")
    parser.add_argument("--table", type=pathlib.Path, metavar="FILE", help="measure nothing, print such a file")
    parser.add_argument("--measure", choices=ALLOCATORS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure)
        return
    if options.table:
        report([json.loads(line)["us"] for line in options.table.read_text().splitlines()])
        return
    with tempfile.TemporaryDirectory() as folder:
        library = str(pathlib.Path(folder) / "free_list.so")
        compiler = os.environ.get("CXX", "c++")
        subprocess.run(
            [compiler, "-O2", "-fPIC", "-shared", str(SUPPORT / "free_list.cpp"), "-o", library, "-ldl"], check=True
        )
        rounds = []
        for number in range(options.rounds):
            rounds.append(one_round(number, library))
            if options.json:
                with options.json.open("a") as file:
                    file.write(json.dumps({"benchmark": "empty", "us": rounds[-1]}) + "\n")
    report(rounds)


if __name__ == "__main__":
    main()
