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
from collections.abc import Mapping

CHILD = pathlib.Path(__file__).parent / "child"


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


def of_this_process(path: str) -> str:
    """The path, told apart from the other processes' of the same run: by the rank where there are several, and by the
    process's number in those that `multiprocessing` started."""
    if os.environ.get("RANK") and os.environ.get("WORLD_SIZE", "1") != "1":
        return tagged(path, f".rank{os.environ['RANK']}")
    if multiprocessing.parent_process() is not None:
        return tagged(path, f".pid{os.getpid()}")
    return path
