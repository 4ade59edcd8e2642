"""The environment variables that the package itself reads. All other `GMLAKE_*` are settings, which the library reads.

GMLAKE_AUTOSTART=1     `child/sitecustomize.py`, if it is on PYTHONPATH, switches gmlake on when PyTorch is imported
GMLAKE_LEVEL           the level, where none is asked for
GMLAKE_RECORD=FILE     the whole process is recorded; the trace is written when it ends
GMLAKE_REPORT=FILE     a page about the whole process is written when it ends
"""

from __future__ import annotations

import multiprocessing
import os
import pathlib
import zlib
from collections.abc import Mapping

CHILD = pathlib.Path(__file__).parent / "child"

# What a process leaves in the environment for those that it starts: its number, where it writes the files that are asked
# for, and which notes have been told.
_WRITER, _TOLD = "_GMLAKE_WRITER", "_GMLAKE_TOLD"


def for_children(environment: Mapping[str, str]) -> dict[str, str]:
    """What is to be added to an environment so that the Python processes started with it switch gmlake on."""
    path = [str(CHILD)]
    path += [folder for folder in environment.get("PYTHONPATH", "").split(os.pathsep) if folder not in ("", str(CHILD))]
    return {"GMLAKE_AUTOSTART": "1", "PYTHONPATH": os.pathsep.join(path)}


def tagged(path: str, tag: str) -> str:
    """The path with a tag before its extension; that of a gzip'd file has two parts."""
    given = pathlib.Path(path)
    extension = given.suffix
    if extension == ".gz":
        extension = given.with_suffix("").suffix + extension
    return str(given.with_name(given.name.removesuffix(extension) + tag + extension))


def claim_files() -> None:
    """This process writes what is asked for, and those that it starts write beside it."""
    os.environ.setdefault(_WRITER, str(os.getpid()))


def first_to_tell(note: str) -> bool:
    """Whether neither this process nor one that started it has told of that; it counts as told from now on."""
    told = os.environ.get(_TOLD, "").split()
    mark = f"{zlib.crc32(note.encode()):x}"
    if mark in told:
        return False
    os.environ[_TOLD] = " ".join([*told, mark])
    return True


def of_this_process(path: str) -> str:
    """The path, told apart from the other processes' of the same run: by the rank where there are several, and by the
    process's number in those that another one started which writes there itself."""
    if os.environ.get("RANK") and os.environ.get("WORLD_SIZE", "1") != "1":
        return tagged(path, f".rank{os.environ['RANK']}")
    if multiprocessing.parent_process() is not None or os.environ.get(_WRITER, str(os.getpid())) != str(os.getpid()):
        return tagged(path, f".pid{os.getpid()}")
    return path
