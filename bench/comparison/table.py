"""Results as tables: one workload's in detail for a terminal, and many in brief as Markdown."""

from __future__ import annotations

import statistics
from typing import Any

from .ratio import over_sessions
from .results import Workload


def details(workload: Workload) -> str:
    """A row an allocator. Memory is in MiB at the peak, medians of the runs that completed."""
    heads = ["allocator", "ok", "driver's MiB", "reserved", "requested", "wasted", "step ms (range)"]
    heads += ["/ native", "/ better of the two", "all steps / that", "retries", "wall s"]
    heads += ["smallest cap"] if workload.caps else []
    rows = [heads]
    for name in workload.allocators():
        runs = workload.runs[name]
        against = ["native"] if name != "native" else []
        both = ["native", "expandable"] if name == "gmlake" else []
        row = [_named(workload, name), f"{sum(run['ok'] for run in runs)} of {len(runs)}"]
        row += [_number(workload.median(name, field)) for field in ("peak_used_mib", "reserved_mib", "requested_mib")]
        row += [_wasted(workload, name), _steps(workload.values(name, "step_ms"))]
        row += [_text(workload.ratio("step_ms", name, others)) for others in (against, both)]
        row += [_text(workload.ratio("total_s", name, both))]
        row += [_number(workload.median(name, "retries")), _number(workload.median(name, "wall_s"), 1)]
        rows.append(row + ([_number(workload.caps.get(name))] if workload.caps else []))
    widths = [max(len(row[column]) for row in rows) for column in range(len(heads))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    failures = {
        f"{name}: {_why(run)}" for name in workload.allocators() for run in workload.runs[name] if not run["ok"]
    }
    return "\n".join(lines + sorted(failures)) + "\n"


def markdown(workloads: list[Workload]) -> str:
    """A row a workload: reserved MiB at the peak, the part of it that nobody asked for, step times, and the time of all
    steps, the first ones included."""
    heads = ["workload", "asked for", "native", "expandable segments", "**gmlake**"]
    heads += ["step ms: native", "expandable", "gmlake", "gmlake / better of the two", "all steps"]
    with_caps = any(workload.caps for workload in workloads)
    heads += ["smallest cap: native", "expandable", "gmlake"] if with_caps else []
    rows = [heads, ["---"] * len(heads)]
    names = ("native", "expandable", "gmlake")
    for workload in workloads:
        row = [_cell(workload.name), _number(workload.requested())]
        row += [_reserved(workload, name) for name in names]
        row += [_number(workload.median(name, "step_ms"), 1) for name in names]
        row += [_text(workload.ratio(field, "gmlake", ["native", "expandable"])) for field in ("step_ms", "total_s")]
        row += [_number(workload.caps.get(name)) for name in names] if with_caps else []
        rows.append(row)
    machines = sorted({_machine(workload.machine) for workload in workloads})
    return "".join(f"| {' | '.join(row)} |\n" for row in rows) + "\n" + "\n".join(machines) + "\n"


def together(workloads: dict[str, list[Workload]], allocator: str = "gmlake") -> str:
    """All sessions' ratios to the better of the others, and their mean over the workloads. Raises ValueError where no
    session has completed runs on both sides."""
    columns = []
    for field in ("step_ms", "total_s"):
        found: dict[str, list[tuple[list[float], list[list[float]]]]] = {}
        for name, each in workloads.items():
            for w in each:
                to = [values for other in w.allocators() if other != allocator and (values := w.values(other, field))]
                if (of := w.values(allocator, field)) and to:
                    found.setdefault(name, []).append((of, to))
        columns.append(dict(zip([*found, "the mean"], map(str, over_sessions(list(found.values()))))) if found else {})
    if not columns[0]:
        raise ValueError(f"no session has completed runs under {allocator} and others")
    rows = [f"| {_cell(name)} | {ratio} | {columns[1].get(name, '–')} |\n" for name, ratio in columns[0].items()]
    return f"| workload | {allocator} / better of the others | all steps |\n| --- | --- | --- |\n" + "".join(rows)


def _why(run: dict[str, Any]) -> str:
    return run["err"] or f"exit status {run['status']}"


def _cell(text: str) -> str:
    """A text that leaves its row and its column whole."""
    return " ".join(text.split()).replace("|", r"\|")


def _named(workload: Workload, name: str) -> str:
    levels = sorted({run["level"] for run in workload.runs[name] if run["level"]})
    return f"{name} ({', '.join(levels)})" if levels else name


def _machine(machine: dict[str, str]) -> str:
    return ", ".join(f"{what} {machine[what]}" for what in ("gpu", "driver", "torch") if what in machine)


def _number(value: float | None, digits: int = 0) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"


def _text(value: object) -> str:
    return "–" if value is None else str(value)


def _steps(values: list[float]) -> str:
    return f"{statistics.median(values):,.1f} ({min(values):,.1f}–{max(values):,.1f})" if values else "–"


def _wasted(workload: Workload, name: str) -> str:
    reserved, requested = workload.median(name, "reserved_mib"), workload.median(name, "requested_mib")
    return "–" if not reserved or requested is None else f"{100 * (1 - requested / reserved):.1f}%"


def _reserved(workload: Workload, name: str) -> str:
    if name not in workload.runs:
        return "–"
    reserved = workload.median(name, "reserved_mib")
    if reserved is None:
        failed = [_why(run) for run in workload.runs[name] if not run["ok"]]
        return "out of memory" if any("out of memory" in why for why in failed) else "failed" if failed else "–"
    return f"{_number(reserved)} ({_wasted(workload, name)})"
