#!/usr/bin/env python3
"""The time of torch.empty of a CUDA tensor and its free, from Python, under PyTorch's allocator and gmlake's levels.

    python3 bench/pytorch_calls.py [--rounds N] [--json FILE]

Each round starts a process for each of native, full, plain and list (`support/free_list.cpp`: the least that can stand
where plain does), all on one core, where they take turns of some milliseconds: so all of them meet the same clock rate
and the same neighbours. Of each turn 1,500 pairs are timed, after some that are not; a turn's figure is divided by the
mean of the native turns before and after it. What is printed is the median of that over a round's turns, the median
over the rounds and its 95% interval (bootstrap): from round to round a process's addresses differ, and with them its
time. Takes c++, a GPU and two cores. `--table FILE` only prints such a file.
"""

from __future__ import annotations

import argparse
import itertools
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
PAIRS = 1_500  # timed, of a turn
UNTIMED = 300  # before them
TURNS = 60  # of each process and size, in a round
RESAMPLES = 2000
SUPPORT = pathlib.Path(__file__).parent / "support"


def measure(allocator: str) -> None:
    """One process: gets ready, then for each size it reads prints the microseconds of a pair."""
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
    for size in sys.stdin:
        elements = SIZES[size.strip()]
        for _ in range(UNTIMED):
            torch.empty(elements, device="cuda")
        began = time.perf_counter()
        for _ in range(PAIRS):
            torch.empty(elements, device="cuda")
        print(round((time.perf_counter() - began) / PAIRS * 1e6, 4), flush=True)


def one_round(library: str) -> dict[str, dict[str, list[float]]]:
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise SystemExit("two cores are needed")
    os.sched_setaffinity(0, cores[:-1])
    children = {
        allocator: subprocess.Popen(
            [sys.executable, __file__, "--measure", allocator],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"FREE_LIST": library},
        )
        for allocator in ALLOCATORS
    }
    for allocator, child in children.items():
        if child.stdout.readline().strip() != "ready":
            raise SystemExit(f"{allocator}: could not begin")
        os.sched_setaffinity(child.pid, cores[-1:])
    times = {allocator: {size: [] for size in SIZES} for allocator in ALLOCATORS}
    for size in SIZES:
        for _ in range(TURNS):
            for allocator, child in children.items():
                child.stdin.write(size + "\n")
                child.stdin.flush()
                times[allocator][size].append(float(child.stdout.readline()))
    for child in children.values():
        child.stdin.close()
        child.wait()
    os.sched_setaffinity(0, cores)
    return times


def interval(values: list[float]) -> tuple[float, float]:
    draw = random.Random(1)
    again = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(RESAMPLES))
    return again[RESAMPLES // 40], again[-1 - RESAMPLES // 40]


def of_native(times: list[float], native: list[float]) -> float:
    """The median over the turns, each beside the native ones around it."""
    around = [(a + b) / 2 for a, b in itertools.pairwise(native)]
    return statistics.median(t / n for t, n in zip(times, around, strict=False))


def report(rounds: list[dict[str, dict[str, list[float]]]]) -> None:
    for size in SIZES:
        for allocator in ALLOCATORS:
            ratios = [of_native(r[allocator][size], r["native"][size]) for r in rounds]
            low, high = interval(ratios)
            median = statistics.median(t for r in rounds for t in r[allocator][size])
            print(
                f"{size:>6}  {allocator:<6}  median {median:.3f} us, "
                f"{statistics.median(ratios):.3f} [{low:.3f}, {high:.3f}] of native"
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
        for _ in range(options.rounds):
            rounds.append(one_round(library))
            if options.json:
                with options.json.open("a") as file:
                    file.write(json.dumps({"benchmark": "empty", "us": rounds[-1]}) + "\n")
    report(rounds)


if __name__ == "__main__":
    main()
