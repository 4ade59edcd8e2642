"""Runs a Python program, left as it is, with gmlake as PyTorch's allocator; the Python processes that it starts too."""

from __future__ import annotations

import argparse
import importlib.util
import os
import runpy
import sys

from . import activation
from .child.gmlake_on_import import on_import
from .environment import for_children
from .library import Error
from .recording import absolute


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m gmlake",
        description=__doc__,
        allow_abbrev=False,
        usage="python -m gmlake [options] script.py …\n       python -m gmlake [options] -m module …",
    )
    parser.add_argument("--preset", metavar="P", help="lake (default), or gmlake: the paper's algorithm")
    parser.add_argument("--limit", metavar="SIZE", help="memory a device at most: 30GiB, or 90%%")
    parser.add_argument("--chunk", metavar="SIZE", help="size of all chunks, where the pool is not to choose")
    parser.add_argument(
        "--level", choices=("auto", "full", "plain"), help="how gmlake takes PyTorch's allocator's place"
    )
    parser.add_argument("--record", metavar="FILE", help="write a trace of the run when it ends: run.csv.gz")
    parser.add_argument("--report", metavar="FILE", help="write a page about the run when it ends: run.html")
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, help="run a module, as python -m does")
    parser.add_argument("script", nargs=argparse.REMAINDER, help="the program and its arguments")
    return parser


def _variables(options: argparse.Namespace) -> dict[str, str]:
    asked = {name: getattr(options, name) for name in ("preset", "limit", "chunk", "level", "record", "report")}
    asked = {name: value for name, value in asked.items() if value is not None}
    asked |= {name: absolute(asked[name]) for name in ("record", "report") if name in asked}
    return {f"GMLAKE_{name.upper()}": value for name, value in asked.items()}


def main(arguments: list[str] | None = None) -> None:
    """Runs the program in this process, as `python` would have. Ends with status 2, and a line that says why, for
    options and settings that make no sense and where there is no such program."""
    parser = _parser()
    options = parser.parse_args(arguments)
    command = options.module or options.script
    if command[:1] == ["--"]:
        del command[0]
    if not command:
        parser.error("a script, or -m and a module, is missing")
    try:
        os.environ.update(_variables(options))
        activation.check_settings()
    except Error as error:
        parser.error(str(error))
    os.environ.update(for_children(os.environ))
    on_import("torch", lambda: activation.enable("auto", {}))

    if options.module:
        sys.path[0] = os.getcwd()
        try:
            found = importlib.util.find_spec(command[0])
        except ImportError as error:
            # Looking for a module imports the packages that it is in, which may lack others.
            if not isinstance(error, ModuleNotFoundError) or not f"{command[0]}.".startswith(f"{error.name}."):
                parser.error(f"{command[0]} can't be found: {type(error).__name__}: {error}")
            found = None
        if found is None:
            parser.error(f"there is no module named {command[0]}")
        if found.submodule_search_locations and importlib.util.find_spec(f"{command[0]}.__main__") is None:
            parser.error(f"{command[0]} is a package, and has no __main__")
        sys.argv[:] = command
        runpy.run_module(command[0], run_name="__main__", alter_sys=True)
    else:
        if not os.path.exists(command[0]):
            parser.error(f"there is no script {command[0]}")
        if os.path.isdir(command[0]) and not os.path.exists(os.path.join(command[0], "__main__.py")):
            parser.error(f"{command[0]} is a folder without a __main__.py")
        sys.path[0] = os.path.dirname(os.path.abspath(command[0]))
        sys.argv[:] = command
        runpy.run_path(command[0], run_name="__main__")


if __name__ == "__main__":
    main()
