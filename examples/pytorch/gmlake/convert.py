"""Converts PyTorch's memory snapshots to gmlake's traces, which `gmlake-replay` reads. Needs neither PyTorch nor a GPU.

torch.cuda.memory._record_memory_history(max_entries=1_000_000)
…
torch.cuda.memory._dump_snapshot("snapshot.pickle")

python -m gmlake.convert snapshot.pickle
"""

from __future__ import annotations

import argparse
import os
import pathlib
import shlex
import sys
from typing import Any

from .history import Counts, trace_of
from .library import Error
from .plain_pickle import read_plain_pickle
from .recording import write


def convert(snapshot: str | os.PathLike[str] | dict[str, Any], device: int = 0) -> str:
    """The history of a device in a snapshot, as a trace's text. `snapshot`: what `torch.cuda.memory._snapshot()`
    returns, or the path of a pickle of it; of that only plain data is read, and nothing executed. Raises `Error` for
    what is no snapshot or has no history of the device. Linear in time and memory."""
    return _converted(snapshot, device)[0]


def _converted(snapshot: str | os.PathLike[str] | dict[str, Any], device: int) -> tuple[str, Counts]:
    held = snapshot if isinstance(snapshot, dict) else read_plain_pickle(snapshot)
    try:
        return trace_of(held, device)
    except Error:
        raise
    # A pickle may hold anything where a snapshot has a text or a number, even what can't be printed.
    except Exception as error:
        plain = isinstance(error, (AttributeError, TypeError)) or (error.args and type(error.args[0]) is str)
        told = f": {error}" if plain else ""
        raise Error(f"gmlake: this is no memory snapshot of PyTorch's: {type(error).__name__}{told}") from error


def main(arguments: list[str] | None = None) -> int:
    """The command. Returns its exit status: 0, or 2 with a line that says why."""
    parser = argparse.ArgumentParser(prog="python -m gmlake.convert", description=__doc__.splitlines()[0])
    parser.add_argument("snapshot", help="a pickle that torch.cuda.memory._dump_snapshot wrote")
    parser.add_argument("trace", nargs="?", help="where to write the trace; gzip'd if its name ends in .gz")
    parser.add_argument(
        "-o", dest="output", metavar="TRACE", help="the same; default: the snapshot's name with .csv.gz"
    )
    parser.add_argument("--device", type=int, default=0, metavar="N", help="whose history; default: 0")
    options = parser.parse_args(arguments)
    if options.trace and options.output:
        parser.error("the trace's name is given twice")
    output = options.trace or options.output or str(pathlib.Path(options.snapshot).with_suffix(".csv.gz"))
    try:
        if os.path.exists(output) and os.path.samefile(output, options.snapshot):
            raise Error(f"gmlake: the trace would take the place of the snapshot {options.snapshot}")
        text, counts = _converted(options.snapshot, options.device)
        write(output, text.encode())
    except Error as error:
        print(error, file=sys.stderr)
        return 2
    print(counts, file=sys.stderr)
    print(f"{output} is written. Next:\n  gmlake-replay --preset all {shlex.quote(output)}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
