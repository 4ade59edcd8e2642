"""A PyTorch memory snapshot's history as a trace that is whole.

PyTorch keeps its last events in a ring, so a history may begin in the middle of a run. What was allocated before shows
in the frees that have no allocation, and in the blocks that the snapshot finds live and the ring does not mention.
These become allocations at the trace's beginning, so that its live bytes are right from the first event to the last:

    before the ring          the ring                                    the snapshot
    ────────── A ────────────free A                                      (not live)      A: allocated at the beginning
    ────────── B ──────────────────────────────────────────────────────  B live          B: allocated at the beginning
                             alloc C ──────────────────────────────────  C live
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from .library import Error

_LIVE = {"active_allocated", "active_pending_free", "active_awaiting_free"}
_STEP = re.compile(r"ProfilerStep#\d+")


class Block(NamedTuple):
    size: int  # bytes requested
    stream: int


@dataclasses.dataclass
class Counts:
    """What went into a trace."""

    entries: int = 0  # of the ring
    allocations: int = 0  # in the ring
    frees: int = 0  # in the ring
    marks: int = 0
    freed_later: int = 0  # allocated before the ring began, freed in it
    from_segments: int = 0  # allocated before the ring began, live at the end
    unmatched: int = 0  # allocated twice, freed twice, or other than the snapshot's blocks say
    live_blocks: int = 0  # at the end
    live_bytes: int = 0

    def __str__(self) -> str:
        return (
            f"{self.entries} events of PyTorch's: {self.allocations} allocations, {self.frees} frees, "
            f"{self.marks} marks\n"
            f"allocated before them: {self.freed_later} blocks freed later on, {self.from_segments} still live "
            f"(taken from segments)\n"
            f"unmatched: {self.unmatched}\n"
            f"live at the end: {self.live_blocks} blocks, {self.live_bytes} bytes requested"
        )


class _Trace:
    """Lines of a trace. Keeps its ids dense and each free matched, whatever it is told."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.live: dict[int, tuple[int, Block]] = {}  # by address
        self._next = 0
        self._streams: dict[int, int] = {}

    def allocate(self, address: int, block: Block) -> None:
        stream = self._streams.setdefault(block.stream, len(self._streams))
        self.lines.append(f"a,{self._next},{block.size},{stream}\n")
        self.live[address] = self._next, block
        self._next += 1

    def free(self, address: int) -> None:
        self.lines.append(f"f,{self.live.pop(address)[0]}\n")

    def mark(self, label: str) -> None:
        self.lines.append(f"m,{label}\n")


def trace_of(snapshot: dict[str, Any], device: int) -> tuple[str, Counts]:
    """The device's history in gmlake's trace format, and what went into it. Raises `Error` if there is none. Linear."""
    entries = _ring(snapshot, device)
    at_end = dict(_live_blocks(snapshot, device))
    if not _tells(entries):
        why = f"none of its {len(entries)} events is one" if entries else "_record_memory_history was not on"
        raise Error(f"gmlake: the snapshot has no allocations and frees of device {device}: {why}{_others(snapshot)}")
    steps = _step_times(snapshot, device, entries[0].get("time_us", 0))

    counts, trace = Counts(entries=len(entries)), _Trace()
    for address, block, freed in _before(entries, at_end):
        counts.freed_later += freed
        counts.from_segments += not freed
        trace.allocate(address, block)
    for entry in entries:
        while steps and steps[-1] <= entry.get("time_us", -1):
            steps.pop()
            counts.marks += 1
            trace.mark("step")
        if entry["action"] == "alloc":
            counts.allocations += 1
            if entry["addr"] in trace.live:
                counts.unmatched += 1
                trace.free(entry["addr"])
            trace.allocate(entry["addr"], _block_of(entry))
        elif entry["action"] == "free_completed":
            counts.frees += 1
            if entry["addr"] in trace.live:
                trace.free(entry["addr"])
            else:
                counts.unmatched += 1

    counts.unmatched += _reconcile(trace, at_end)
    counts.live_blocks = len(trace.live)
    counts.live_bytes = sum(block.size for _, block in trace.live.values())
    return "".join(trace.lines), counts


def _ring(snapshot: dict[str, Any], device: int) -> list[dict[str, Any]]:
    rings = snapshot.get("device_traces") if isinstance(snapshot, dict) else None
    if not isinstance(rings, list) or not isinstance(snapshot.get("segments"), list):
        raise Error("gmlake: this is no memory snapshot of PyTorch 2.1 or later: no 'segments' and 'device_traces'")
    if not 0 <= device < max(1, len(rings)):
        raise Error(f"gmlake: there is no device {device} in the snapshot{_others(snapshot)}")
    return rings[device] if rings else []


def _tells(ring: list[dict[str, Any]]) -> bool:
    """Whether there is anything in a ring that a trace is made of."""
    return any(entry["action"] in ("alloc", "free_completed") for entry in ring)


def _others(snapshot: dict[str, Any]) -> str:
    with_history = [str(n) for n, ring in enumerate(snapshot["device_traces"]) if ring and _tells(ring)]
    return f"; with a history: device {', '.join(with_history)}" if with_history else ""


def _number(of: dict[str, Any], name: str, otherwise: int | None = None) -> int:
    """A size, an address or a stream. A pickle may hold anything in its place, even what can't be hashed or printed."""
    value = of.get(name, otherwise)
    if type(value) is not int or not 0 <= value < 1 << 64:
        raise TypeError(f"{name!r} is no number, or none of 64 bits")
    return value


def _live_blocks(snapshot: dict[str, Any], device: int) -> Iterator[tuple[int, Block]]:
    for segment in snapshot["segments"]:
        if segment.get("device", 0) != device:
            continue
        address = _number(segment, "address")
        for block in segment["blocks"]:
            # Older snapshots give no addresses; a segment's blocks lie one after the other.
            address = _number(block, "address", address)
            size = _number(block, "size")
            if block["state"] in _LIVE:
                yield address, Block(_number(block, "requested_size", size), _number(segment, "stream", 0))
            address += size


def _block_of(entry: dict[str, Any]) -> Block:
    return Block(_number(entry, "size"), _number(entry, "stream", 0))


def _before(entries: list[dict[str, Any]], at_end: dict[int, Block]) -> Iterator[tuple[int, Block, bool]]:
    """The blocks that lived before the ring began, each with whether the ring frees it."""
    seen: set[int] = set()
    for entry in entries:
        if entry["action"] in ("alloc", "free_completed") and (address := _number(entry, "addr")) not in seen:
            seen.add(address)
            if entry["action"] == "free_completed":
                yield address, _block_of(entry), True
    for address, block in at_end.items():
        if address not in seen:
            yield address, block, False


def _reconcile(trace: _Trace, at_end: dict[int, Block]) -> int:
    """Ends the trace with what the snapshot found live, and no more. Returns at how many addresses they differed."""
    differing = set()
    for address, (_, block) in list(trace.live.items()):
        if address not in at_end or at_end[address].size != block.size:
            differing.add(address)
            trace.free(address)
    for address, block in at_end.items():
        if address not in trace.live:
            differing.add(address)
            trace.allocate(address, block)
    return len(differing)


def _step_times(snapshot: dict[str, Any], device: int, since: int) -> list[int]:
    """When the profiler's steps began, the first one last. Of those before `since` only the one that was under way."""
    times = sorted(
        (
            note["time_us"]
            for note in snapshot.get("external_annotations", [])
            if note.get("stage") == "START" and note.get("device") == device and _STEP.fullmatch(note.get("name", ""))
        ),
        reverse=True,
    )
    while len(times) > 1 and times[-2] <= since:
        times.pop()
    return times
