"""Recordings of what a process allocates, and the files they leave.

Only the process that began a recording writes it: a forked child has its parent's memory, and no GPU.
"""

from __future__ import annotations

import atexit
import gzip
import os
import pathlib
import sys
from collections.abc import Callable

from .environment import claim_files, of_this_process, tagged
from .library import Error, Library


class Recording:
    """What is allocated from its making on. As a context manager it stops at the end of the block; whatever is still
    being recorded when the process ends is written then."""

    running: Recording | None = None
    before_stopping: list[Callable[[], object]] = []  # for those who have something to tell late

    def __init__(self, library: Library, path: str | os.PathLike[str], whole_process: bool = False):
        """Raises `Error` where another recording is running, or the file can't be written."""
        Recording.check_none_runs()
        self.path = absolute(path)
        self._whole_process = whole_process
        self._library = library
        self._process = os.getpid()
        library.do("gmlake_record_start")
        Recording.running = self
        atexit.register(_without_traceback, self.stop)

    @staticmethod
    def check_none_runs() -> None:
        """Raises `Error` where one does."""
        if Recording.running is not None:
            raise Error(f"gmlake: {Recording.running.path} is being recorded already; stop that first")

    def stop(self) -> list[str]:
        """Ends the recording and writes a trace for each device that was used, gzip'd if the name ends in .gz: device
        0's under the name given, device n's with `.gpu<n>` before the extension. Returns their paths; none the second
        time, and none in a forked child. Raises `Error` if one can't be written. Linear in the events."""
        if Recording.running is not self or os.getpid() != self._process:
            return []
        for tell in Recording.before_stopping:
            tell()
        Recording.running = None
        self._library.do("gmlake_record_stop")
        base = of_this_process(self.path) if self._whole_process else self.path
        written = []
        for device in range(self._library.number("gmlake_device_count")):
            trace = self._library.trace(device)
            if not trace:
                continue
            path = tagged(base, f".gpu{device}") if device > 0 else base
            write(path, trace)
            written.append(path)
        return written

    def __enter__(self) -> Recording:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def asked_by_environment() -> Callable[[Library], None]:
    """Returns what begins the recording that GMLAKE_RECORD and GMLAKE_REPORT ask for. The page needs one too, to show
    the run's course. Raises `Error` now where it could not be done."""
    asked = (os.environ.get(name) for name in ("GMLAKE_RECORD", "GMLAKE_REPORT"))
    trace, page = (absolute(path) if path else None for path in asked)
    if trace:
        Recording.check_none_runs()

    def begin(library: Library) -> None:
        process = os.getpid()
        if trace or page:
            claim_files()

        def report() -> None:
            if os.getpid() == process and library.number("gmlake_device_count") > 0:
                library.do("gmlake_report", os.fsencode(of_this_process(page)))

        if page:
            atexit.register(_without_traceback, report)
        if trace:
            Recording(library, trace, whole_process=True)
        elif page:
            library.do("gmlake_record_start")

    return begin


def path_text(path: str | os.PathLike[str]) -> str:
    """The path as a text. Raises `Error` for what can't be one."""
    try:
        text = os.fsdecode(path)
    except TypeError:
        text = ""
    if not text or "\0" in text:
        raise Error(f"gmlake: {path!r} is no path of a file")
    return text


def absolute(path: str | os.PathLike[str]) -> str:
    """The path, whatever folder the process changes to later. Raises `Error` where no file can be written there: better
    now than when there is something to write."""
    whole = os.path.abspath(path_text(path))
    folder, name = os.path.split(whole)
    if os.path.isdir(whole):
        raise Error(f"gmlake: {whole} is a folder, and no file can be written in its place")
    if not os.path.isdir(folder):
        raise Error(f"gmlake: there is no folder {folder} to write {name} to")
    if not os.access(whole if os.path.exists(whole) else folder, os.W_OK):
        raise Error(f"gmlake: this process may not write {whole}")
    return whole


def write(path: str | os.PathLike[str], trace: bytes) -> None:
    """Writes a trace, gzip'd if the name ends in .gz. Raises `Error`."""
    try:
        pathlib.Path(path).write_bytes(gzip.compress(trace, 6, mtime=0) if str(path).endswith(".gz") else trace)
    except OSError as error:
        raise Error(f"gmlake: can't write {path}: {error.strerror}") from error


def _without_traceback(last: Callable[[], object]) -> None:
    try:
        last()
    except Error as error:
        print(error, file=sys.stderr)
