"""Measures a Python program from inside, without a change to it: lies first on PYTHONPATH of what compare.py runs.

It waits for the import of PyTorch, and in processes that then use CUDA samples the device's memory, times the
optimizer's steps, sets the cap, and at the end leaves one JSON file in the folder COMPARE_PROBE. A process without
PyTorch goes on as if it were not there. The next sitecustomize, gmlake's if it is on PYTHONPATH, runs first.
"""

import os
import pathlib
import sys

_HERE = pathlib.Path(__file__).parent
_ON_IMPORT = _HERE.parents[2] / "examples/pytorch/gmlake/child/gmlake_on_import.py"


def _run_the_next():
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    here = [n for n, folder in enumerate(sys.path) if os.path.realpath(folder) == os.path.realpath(_HERE)]
    following = PathFinder.find_spec("sitecustomize", sys.path[here[-1] + 1 :] if here else [])
    if following is not None and following.loader is not None:
        sys.modules["sitecustomize"] = module = module_from_spec(following)
        following.loader.exec_module(module)


def _measure():
    from measuring import Measuring

    Measuring(os.environ["COMPARE_PROBE"], os.environ.get("COMPARE_CAP_MIB")).begin()


_run_the_next()
if os.environ.get("COMPARE_PROBE"):
    from importlib.util import module_from_spec, spec_from_file_location

    _spec = spec_from_file_location("gmlake_on_import", _ON_IMPORT)
    _module = module_from_spec(_spec)
    _spec.loader.exec_module(_module)
    _module.on_import("torch", _measure)
