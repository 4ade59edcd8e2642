#!/usr/bin/env python3
"""Where the time of a profiled run goes: python3 bench/pytorch_gaps.py FILE.json[.gz] [--top 12]

Reads what PyTorch's profiler wrote (`pytorch_swap.py --profile`). Tells for how long kernels ran and for how long none
did, what crossed the link meanwhile, at which rate each way, and the longest gaps: when, for how long each way was
busy in them, what was left of them behind the last copy to the device, and which kernel came then.
"""

from __future__ import annotations

import argparse
import bisect
import gzip
import json
import pathlib
from collections.abc import Iterable
from typing import NamedTuple

LONG_US = 200  # a gap of less is launch overhead


class Span(NamedTuple):
    """Microseconds from the first event on."""

    begin: float
    end: float
    name: str
    bytes: int = 0


class Recorded(NamedTuple):
    kernels: list[Span]
    to_host: list[Span]
    to_device: list[Span]


def read(path: pathlib.Path) -> Recorded:
    """Raises ValueError where there is no kernel in the file, or it is no trace."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt") as file:
        try:
            events = json.load(file)["traceEvents"]
        except (KeyError, TypeError, json.JSONDecodeError) as error:
            raise ValueError(f"{path}: no trace of PyTorch's profiler") from error
    recorded = Recorded([], [], [])
    for e in events:
        category, name = e.get("cat"), e.get("name", "")
        if e.get("ph") != "X" or category not in ("kernel", "gpu_memcpy", "gpu_memset"):
            continue
        span = Span(float(e["ts"]), float(e["ts"]) + float(e["dur"]), name, int(e.get("args", {}).get("bytes", 0)))
        if category == "gpu_memcpy" and "DtoH" in name:
            recorded.to_host.append(span)
        elif category == "gpu_memcpy" and "HtoD" in name:
            recorded.to_device.append(span)
        else:
            recorded.kernels.append(span)
    if not recorded.kernels:
        raise ValueError(f"{path}: no kernel in it")
    first = min(s.begin for spans in recorded for s in spans)
    return Recorded(
        *(sorted(s._replace(begin=s.begin - first, end=s.end - first) for s in spans) for spans in recorded)
    )


def union(spans: Iterable[Span]) -> list[tuple[float, float]]:
    """The times at which any of them is under way, in order."""
    found: list[tuple[float, float]] = []
    for s in sorted(spans):
        if found and s.begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], s.end))
        else:
            found.append((s.begin, s.end))
    return found


def length(times: list[tuple[float, float]]) -> float:
    return sum(end - begin for begin, end in times)


def within(times: list[tuple[float, float]], begin: float, end: float) -> float:
    """How long of [begin, end) lies in them."""
    at = max(0, bisect.bisect(times, (begin, begin)) - 1)
    total = 0.0
    for b, e in times[at:]:
        if b >= end:
            break
        total += max(0.0, min(e, end) - max(b, begin))
    return total


class Gap(NamedTuple):
    begin: float
    end: float
    to_host: float  # microseconds of it in which something is copied there
    to_device: float
    behind_copy: (
        float  # from the end of the last copy to the device that ends in it to the gap's; it itself without one
    )
    next: str


def gaps(of: Recorded) -> list[Gap]:
    """The times between kernels that are long, in order."""
    busy = union(of.kernels)
    out, back = union(of.to_host), union(of.to_device)
    starts = [k.begin for k in of.kernels]
    ends = sorted(s.end for s in of.to_device)
    found = []
    for (_, begin), (end, _) in zip(busy, busy[1:], strict=False):
        if end - begin < LONG_US:
            continue
        last = ends[bisect.bisect(ends, end) - 1] if ends and ends[0] <= end else begin
        found.append(
            Gap(
                begin,
                end,
                within(out, begin, end),
                within(back, begin, end),
                end - max(begin, last),
                of.kernels[bisect.bisect_left(starts, end)].name,
            )
        )
    return found


def report(of: Recorded, top: int) -> str:
    ms = 1e-3
    last = max(s.end for spans in of for s in spans)
    busy = length(union(of.kernels))
    lines = [f"{last * ms:.1f} ms: kernels {busy * ms:.1f}, none {(last - busy) * ms:.1f}"]
    for name, spans in (("to the host", of.to_host), ("to the device", of.to_device)):
        took, moved = length(union(spans)), sum(s.bytes for s in spans)
        rate = f", {moved / took / 1e3:.1f} GB/s" if took else ""
        lines.append(f"{name}: {len(spans)} copies, {moved / 2**20:.0f} MiB in {took * ms:.1f} ms{rate}")
    found = gaps(of)
    idle = sum(g.end - g.begin for g in found)
    lines.append(
        f"{len(found)} gaps of {LONG_US} us or more: {idle * ms:.1f} ms, of which copying to the host "
        f"{sum(g.to_host for g in found) * ms:.1f}, to the device {sum(g.to_device for g in found) * ms:.1f}; "
        f"behind the last copy that ended there {sum(g.behind_copy for g in found) * ms:.1f}"
    )
    lines.append("  at ms     ms  out ms  in ms  behind  then")
    for g in sorted(sorted(found, key=lambda g: g.begin - g.end)[:top]):
        lines.append(
            f"{g.begin * ms:7.1f} {(g.end - g.begin) * ms:6.2f} {g.to_host * ms:7.2f} {g.to_device * ms:6.2f} "
            f"{g.behind_copy * ms:7.2f}  {g.next[:60]}"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--top", type=int, default=12, metavar="N", help="how many gaps; default: 12")
    options = parser.parse_args()
    try:
        print(report(read(options.file), options.top))
    except (OSError, ValueError) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
