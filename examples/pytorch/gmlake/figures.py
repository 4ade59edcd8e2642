"""The libraries' figures and maps, from text to dictionaries. Sizes and addresses are in bytes."""

from __future__ import annotations

from typing import Any

from .library import Error

_PLURAL = {"chunk": "chunks", "block": "blocks", "stitch": "stitches", "planned": "planned"}
_FIELDS = {"chunk": 4, "block": 8, "stitch": 8, "planned": 6}


def parse_stats(text: str) -> dict[str, int]:
    """Figures by name, from lines of `name value`. Raises `Error` for anything else."""
    found: dict[str, int] = {}
    for line in text.splitlines():
        name, _, value = line.rpartition(" ")
        try:
            found[name] = int(value)
        except ValueError:
            raise Error(f"gmlake: the figure {line!r} is no number") from None
    return found


def parse_snapshot(text: str) -> dict[str, list[dict[str, Any]]]:
    """Chunks, blocks, stitches and planned blocks, from lines of comma-separated values. Raises `Error` for anything else."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in _PLURAL.values()}
    for line in text.splitlines():
        kind, *fields = line.split(",")
        try:
            if len(fields) + 1 != _FIELDS[kind]:
                raise ValueError
            found[_PLURAL[kind]].append(_READ[kind](*fields))
        except (KeyError, ValueError):
            raise Error(f"gmlake: {line!r} is no line of a snapshot") from None
    return found


def _chunk(pool: str, address: str, size: str) -> dict[str, Any]:
    return {"pool": pool, "address": int(address), "size": int(size)}


def _block(pool: str, address: str, size: str, requested: str, stream: str, state: str, pending: str) -> dict[str, Any]:
    return _chunk(pool, address, size) | {
        "requested": int(requested),
        "stream": int(stream),
        "state": state,
        "pending": pending == "1",
    }


def _planned(pool: str, address: str, size: str, requested: str, stream: str) -> dict[str, Any]:
    return _chunk(pool, address, size) | {"requested": int(requested), "stream": int(stream)}


def _stitch(pool: str, address: str, size: str, requested: str, stream: str, live: str, extents: str) -> dict[str, Any]:
    parts = [part.split(":") for part in extents.split(";") if part]
    return _chunk(pool, address, size) | {
        "requested": int(requested),
        "stream": int(stream),
        "live": live == "1",
        "extents": [{"address": int(home), "size": int(bytes_)} for home, bytes_ in parts],
    }


_READ = {"chunk": _chunk, "block": _block, "stitch": _stitch, "planned": _planned}
