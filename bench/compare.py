#!/usr/bin/env python3
"""Runs your own training command under PyTorch's allocators and under gmlake, and tells what each takes.

    python bench/compare.py -- python train.py --epochs 1
    python bench/compare.py --table results.jsonl --chart results.svg

The command is left as it is: a probe is put into its Python processes, which samples the device's memory and times the
optimizer's steps. Allocators take turns, so that a drift of the machine meets all alike. Nothing else should run on the
GPU: the driver's figure counts all processes. A command that prints lines `REC {json}` with its own figures (ms_med,
peak_used_mib, requested_mib, reserved_mib, retries, ok, err) is believed. What does not exit with 0, or says
`"ok": false`, has failed; the other runs go on.
"""

from __future__ import annotations

import argparse
import datetime
import math
import pathlib
import subprocess
import sys
from typing import Any

from comparison import results, table
from comparison.caps import smallest_cap
from comparison.chart import check, draw
from comparison.ratio import in_turn
from comparison.run import ALLOCATORS, Run, environment, run


def _allocators(text: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if name not in ALLOCATORS:
            raise argparse.ArgumentTypeError(f"no allocator is named '{name}'; there are: {', '.join(ALLOCATORS)}")
        if names.count(name) > 1:
            raise argparse.ArgumentTypeError(f"'{name}' is named twice")
    return names


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError("it must be 1 or more")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError("it must be a number above 0")
    return seconds


def _options(arguments: list[str] | None) -> tuple[argparse.ArgumentParser, argparse.Namespace]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--runs", type=_count, default=3, metavar="N", help="runs under each allocator; default: 3")
    parser.add_argument(
        "--allocators",
        type=_allocators,
        default=list(ALLOCATORS),
        metavar="A,B",
        help="of native, expandable and gmlake; default: all",
    )
    parser.add_argument("--caps", action="store_true", help="also find the smallest cap that each survives")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="append each result to this file")
    parser.add_argument("--chart", type=pathlib.Path, metavar="FILE", help="draw the results as .svg or .png")
    parser.add_argument("--name", help="of the workload in tables; default: the command")
    parser.add_argument("--timeout", type=_seconds, metavar="S", help="seconds after which a run is ended")
    parser.add_argument("--table", type=pathlib.Path, metavar="FILE", help="only print the table of such a file")
    parser.add_argument(
        "--sessions", type=pathlib.Path, metavar="FILE", help="only print the ratios of all its sessions together"
    )
    parser.add_argument("command", nargs=argparse.REMAINDER, help="-- and the command to compare under")
    options = parser.parse_args(arguments)
    if options.command[:1] == ["--"]:
        del options.command[0]
    return parser, options


def driver_version() -> str | None:
    """The NVIDIA driver's release; None where it can't be asked."""
    try:
        asked = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return None


class Session:
    """The runs of one call of this script, and where they are kept."""

    def __init__(self, command: list[str], name: str, timeout_s: float | None, keep: pathlib.Path | None):
        self._command, self._timeout, self._keep = command, timeout_s, keep
        self._machine = {"driver": version} if (version := driver_version()) else {}
        self._common = {
            "session": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "name": name,
            "command": command,
        }
        self.lines: list[dict[str, Any]] = []

    def run(self, allocator: str) -> None:
        done = self._run(allocator, None)
        self._add({"kind": "run"} | self._common | vars(done))

    def find_cap(self, allocator: str) -> None:
        """Bisects between what was requested and what was reserved in the runs before."""
        workload = self.workload()
        requested, reserved = workload.requested(), workload.median(allocator, "reserved_mib")
        if not requested or reserved is None:
            print(f"{allocator}: no cap is looked for, as no run told its peak", file=sys.stderr)
            return
        tried: list[tuple[float, bool]] = []

        def survives(cap_mib: float) -> bool:
            ok = self._run(allocator, cap_mib).ok
            tried.append((round(cap_mib, 1), ok))
            return ok

        found = smallest_cap(requested, reserved, survives)
        line = {"allocator": allocator, "smallest_cap_mib": found and round(found, 1), "tried": tried}
        self._add({"kind": "cap"} | self._common | line | {"machine": workload.machine})

    def workload(self) -> results.Workload:
        return results.Workload(self._common["name"], self.lines)

    def _run(self, allocator: str, cap_mib: float | None) -> Run:
        done = run(self._command, allocator, cap_mib, self._timeout)
        done.machine |= self._machine
        under = f"{allocator}, at most {cap_mib:,.0f} MiB" if cap_mib is not None else allocator
        print(f"{under}: {'ok' if done.ok else done.err or done.status}, {done.wall_s:.1f} s", file=sys.stderr)
        return done

    def _add(self, line: dict[str, Any]) -> None:
        self.lines.append(line)
        results.append(self._keep, line)


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit status: 0; 1 if no run completed; 2, with a line that says why, if the command line is wrong; 130
    if it was interrupted, after the table of what had run."""
    parser, options = _options(arguments)
    interrupted = False
    if sum((options.table is not None, options.sessions is not None, bool(options.command))) != 1:
        parser.error("either a command after --, or --table or --sessions and a file")
    try:
        if options.sessions is not None:
            print(table.together(results.sessions(results.read(options.sessions), "gmlake")), end="")
            return 0
        if options.chart is not None:
            check(options.chart)
        if options.table is not None:
            workloads = results.workloads(results.read(options.table))
            if not workloads:
                raise ValueError(f"{options.table} has no results")
            print(table.markdown(workloads), end="")
        else:
            for name in options.allocators:
                environment(name)  # tells at once if there is no gmlake
            if options.json is not None:
                options.json.open("a").close()  # and if nothing can be kept
            session = Session(options.command, options.name or " ".join(options.command), options.timeout, options.json)
            try:
                for name in in_turn(options.allocators, options.runs):
                    session.run(name)
                for name in options.allocators if options.caps else []:
                    session.find_cap(name)
            except KeyboardInterrupt:
                interrupted = True
                print("interrupted", file=sys.stderr)
                if not session.lines:
                    return 130
            workloads = [session.workload()]
            print(table.details(workloads[0]), end="")
        if options.chart is not None:
            draw(workloads, options.chart)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    if interrupted:
        return 130
    return 0 if any(line["ok"] for each in workloads for runs in each.runs.values() for line in runs) else 1


if __name__ == "__main__":
    sys.exit(main())
