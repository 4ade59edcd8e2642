"""Results of comparisons, kept as JSON objects a line, and what they come to.

A line is a run (`"kind": "run"`, with the fields of `Run`) or the smallest cap that was found (`"kind": "cap"`). Each
has the `session` it belongs to, by the time that began, the workload's `name`, the `command` and the `machine`.
"""

from __future__ import annotations

import json
import pathlib
import statistics
from typing import Any

from .ratio import Ratio, ratio_to_best
from .run import ALLOCATORS, is_figure

_BOTH: dict[str, type] = {"name": str, "session": str, "allocator": str, "machine": dict}
_OTHERS: dict[str, dict[str, type]] = {"run": _BOTH | {"ok": bool, "err": str, "status": object}, "cap": _BOTH}
_FIGURES = {
    "run": ("wall_s", "step_ms", "peak_used_mib", "requested_mib", "reserved_mib", "retries"),
    "cap": ("smallest_cap_mib",),
}
_MAYBE = ("total_s",)  # figures that a line may lack


class Workload:
    """One workload's results: of each allocator those of one session."""

    def __init__(self, name: str, lines: list[dict[str, Any]]):
        self.name = name
        self.machine: dict[str, str] = {}
        self.runs: dict[str, list[dict[str, Any]]] = {}
        self.caps: dict[str, float | None] = {}
        for line in lines:
            if line["kind"] == "cap":
                self.caps[line["allocator"]] = line["smallest_cap_mib"]
                continue
            self.runs.setdefault(line["allocator"], []).append(line)
            self.machine |= line["machine"]

    def allocators(self) -> list[str]:
        return [name for name in ALLOCATORS if name in self.runs]

    def values(self, allocator: str, field: str) -> list[float]:
        """A field of the runs that completed."""
        return [run[field] for run in self.runs.get(allocator, []) if run["ok"] and run.get(field) is not None]

    def median(self, allocator: str, field: str) -> float | None:
        values = self.values(allocator, field)
        return statistics.median(values) if values else None

    def requested(self) -> float | None:
        """What the program asks for at its peak, in MiB; the same under every allocator but for chance."""
        found = [value for name in self.allocators() for value in self.values(name, "requested_mib")]
        return statistics.median(found) if found else None

    def ratio(self, field: str, allocator: str, others: list[str]) -> Ratio | None:
        """A field of the allocator's runs, a time, divided by the best of the others'. None where they ran in different
        sessions, and so did not take turns."""
        against = [other for other in others if other != allocator and other in self.runs]
        if any(self.session(other) != self.session(allocator) for other in against):
            return None
        return ratio_to_best(self.values(allocator, field), [self.values(o, field) for o in against])

    def session(self, allocator: str) -> str | None:
        runs = self.runs.get(allocator)
        return runs[0]["session"] if runs else None


def append(path: pathlib.Path | None, line: dict[str, Any]) -> None:
    """Adds a line to a file, at once, so that an interruption loses nothing. Does nothing without a path."""
    if path is not None:
        with open(path, "a") as file:
            file.write(json.dumps(line) + "\n")


def read(path: pathlib.Path) -> list[dict[str, Any]]:
    """A file's lines. Raises ValueError, with the line's number, for one that is no result, or an incomplete one."""
    found = []
    for number, text in enumerate(path.read_bytes().splitlines(), 1):
        try:
            line = json.loads(text)
            if line["kind"] not in ("run", "cap"):
                raise KeyError
        except (ValueError, KeyError, TypeError, RecursionError):
            raise ValueError(f"{path}, line {number}: no result of compare.py") from None
        if wrong := _wrong(line):
            raise ValueError(f"{path}, line {number}: {wrong}")
        found.append(line)
    return found


def _wrong(line: dict[str, Any]) -> str:
    """What a line lacks for a table to be made of it, or has that makes no sense."""
    others, figures = _OTHERS[line["kind"]], _FIGURES[line["kind"]]
    missing = [name for name in (*others, *figures) if name not in line]
    if missing:
        return f"it has no {', '.join(missing)}"
    odd = [name for name, kind in others.items() if not isinstance(line[name], kind)]
    odd += [name for name in (*figures, *_MAYBE) if line.get(name) is not None and not is_figure(name, line[name])]
    return ", ".join(f"its {name} can't be {line[name]!r}" for name in odd)


def workloads(lines: list[dict[str, Any]]) -> list[Workload]:
    """Each workload, with each allocator's latest session. In the order of first appearance."""
    latest: dict[str, dict[str, str]] = {}
    for line in lines:
        sessions = latest.setdefault(line["name"], {})
        sessions[line["allocator"]] = max(line["session"], sessions.get(line["allocator"], ""))
    return [
        Workload(
            name,
            [line for line in lines if line["name"] == name and line["session"] == sessions[line["allocator"]]],
        )
        for name, sessions in latest.items()
    ]


def sessions(lines: list[dict[str, Any]], allocator: str) -> dict[str, list[Workload]]:
    """Each workload's sessions in which the allocator and others took turns. In the order of first appearance."""
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for line in lines:
        if line["kind"] == "run":
            found.setdefault(line["name"], {}).setdefault(line["session"], []).append(line)
    made = {name: [Workload(name, each) for each in by.values()] for name, by in found.items()}
    both = {name: [w for w in all_ if allocator in w.runs and len(w.runs) > 1] for name, all_ in made.items()}
    return {name: of for name, of in both.items() if of}
