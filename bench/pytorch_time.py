#!/usr/bin/env python3
"""The part of a training step that the allocator takes, under PyTorch's allocators and under gmlake: every allocation and
every free is timed where PyTorch makes it (`support/timed_allocator.cpp`), its driver calls and waits for locks included.

    python3 bench/pytorch_time.py [--rounds N] [--json FILE] NAME...      workloads of workloads.py

It tells allocators apart where whole steps can't: these vary by some per cent from run to run, of which the allocator
is one. Printed are, of a step after the second, medians over steps and rounds: its time, the allocator's, and that for
a block; and the allocator's mean, which what comes in few steps counts in. `--table FILE` only prints such a file.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ALLOCATORS = {"native": "", "expandable": "expandable_segments:True", "gmlake": ""}
WARM_UP = 2
SOURCE = pathlib.Path(__file__).parent / "support" / "timed_allocator.cpp"


def build(folder: str) -> str:
    from torch.utils.cpp_extension import include_paths, library_paths

    library = str(pathlib.Path(folder) / "timed_allocator.so")
    command = [os.environ.get("CXX", "c++"), "-std=c++20", "-O2", "-fPIC", "-shared", str(SOURCE), "-o", library]
    command += [flag for path in include_paths("cuda") for flag in ("-isystem", path)]
    command += [f"-L{path}" for path in library_paths()] + [
        "-lc10",
        "-lc10_cuda",
        "-Wl,--unresolved-symbols=ignore-all",
    ]
    subprocess.run(command, check=True)
    return library


def measure(allocator: str, name: str, library: str) -> None:
    """One process: prints the step's milliseconds and what was timed in it, by step."""
    import torch
    import workloads

    if allocator == "gmlake":
        import gmlake

        gmlake.enable()
    timed = ctypes.CDLL(library)
    timed.timed_install()
    figures = (ctypes.c_uint64 * 4)()
    steps: list[dict[str, float]] = []

    def so_far() -> list[int]:
        timed.timed_figures(figures)
        return list(figures)

    class TimedClock(workloads.Clock):
        def __enter__(self) -> None:
            super().__enter__()
            self.before = so_far()

        def __exit__(self, *exception: object) -> None:
            super().__exit__(*exception)
            allocations, allocating, frees, freeing = (a - b for a, b in zip(so_far(), self.before, strict=True))
            steps.append(
                {
                    "ms": round(1e3 * self.ts[-1], 2),
                    "allocations": allocations,
                    "allocating_us": allocating / 1e3,
                    "frees": frees,
                    "freeing_us": freeing / 1e3,
                }
            )

    torch.manual_seed(0)
    workloads.Clock = TimedClock
    workloads.WORKLOADS[name]()
    print(json.dumps({"name": name, "allocator": allocator, "steps": steps}), flush=True)


def report(runs: list[dict]) -> None:
    print(
        f"{'workload':<16}{'allocator':<12}{'step ms':>9}{'allocator us':>14}{'of the step':>13}{'mean us':>10}{'ns a block':>12}"
    )
    for name in dict.fromkeys(r["name"] for r in runs):
        for allocator in ALLOCATORS:
            steps = [s for r in runs if (r["name"], r["allocator"]) == (name, allocator) for s in r["steps"][WARM_UP:]]
            if not steps:
                continue
            taken = [s["allocating_us"] + s["freeing_us"] for s in steps]
            ms, us = statistics.median(s["ms"] for s in steps), statistics.median(taken)
            a_block = statistics.median(1e3 * t / s["allocations"] for t, s in zip(taken, steps, strict=True))
            print(
                f"{name:<16}{allocator:<12}{ms:9.1f}{us:14.0f}{us / 1e3 / ms:13.2%}"
                f"{statistics.fmean(taken):10.0f}{a_block:12.0f}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--rounds", type=int, default=2, metavar="N", help="default: 2")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="append a line a run to this file")
    parser.add_argument("--table", type=pathlib.Path, metavar="FILE", help="measure nothing, print such a file")
    parser.add_argument("--measure", nargs=2, metavar=("ALLOCATOR", "LIBRARY"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.table:
        report([json.loads(line) for line in options.table.read_text().splitlines()])
        return
    if not options.names:
        parser.error("which workloads?")
    if options.measure:
        measure(options.measure[0], options.names[0], options.measure[1])
        return
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        library = build(folder)
        for number in range(options.rounds):
            for name in options.names:
                order = list(ALLOCATORS)
                for allocator in order[number % 3 :] + order[: number % 3]:
                    child = subprocess.run(
                        [sys.executable, __file__, "--measure", allocator, library, name],
                        stdout=subprocess.PIPE,
                        text=True,
                        check=True,
                        env=os.environ | {"PYTORCH_ALLOC_CONF": ALLOCATORS[allocator]},
                    )
                    runs.append(json.loads(child.stdout.splitlines()[-1]))
                    if options.json:
                        with options.json.open("a") as file:
                            file.write(json.dumps(runs[-1]) + "\n")
    report(runs)


if __name__ == "__main__":
    main()
