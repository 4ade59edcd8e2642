"""Switches gmlake on in a Python process whose environment asks for it, when it imports PyTorch.

Python runs a `sitecustomize` at its start. This one lies first on PYTHONPATH, so the one that it hides is run after it.
"""

import os
import pathlib
import sys

_HERE = pathlib.Path(__file__).parent


def _switch_on():
    # The package that this file belongs to, whether or not it is on the path.
    if "gmlake" not in sys.modules:
        import importlib.util

        package = _HERE.parent
        spec = importlib.util.spec_from_file_location(
            "gmlake", package / "__init__.py", submodule_search_locations=[str(package)]
        )
        sys.modules["gmlake"] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    sys.modules["gmlake"].enable()


def _run_the_next():
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    here = [n for n, folder in enumerate(sys.path) if os.path.realpath(folder) == os.path.realpath(_HERE)]
    following = PathFinder.find_spec("sitecustomize", sys.path[here[-1] + 1 :] if here else [])
    if following is not None and following.loader is not None:
        sys.modules["sitecustomize"] = module = module_from_spec(following)
        following.loader.exec_module(module)


if os.environ.get("GMLAKE_AUTOSTART") == "1":
    from gmlake_on_import import on_import

    on_import("torch", _switch_on)
_run_the_next()
