"""Calls back once a module has been imported, without importing it. Needs nothing else of the package."""

from __future__ import annotations

import importlib.util
import sys
import threading
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import Any


class _Watch(MetaPathFinder):
    def __init__(self, name: str, call: Callable[[], None]):
        self._name = name
        self._call = call
        self._looking = threading.local()

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        # It stays in place although it has been asked: many only look whether the module is there.
        if name != self._name or getattr(self._looking, "now", False):
            return None
        self._looking.now = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._looking.now = False
        if spec is not None and spec.loader is not None:
            self._follow(spec.loader)
        return spec

    def _follow(self, loader: Any) -> None:
        execute = loader.exec_module

        def execute_and_call(module: Any) -> None:
            execute(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
                self._call()

        loader.exec_module = execute_and_call


def on_import(name: str, call: Callable[[], None]) -> None:
    """Calls once the top-level module `name` has been imported; at once if it has been. Of several calls for one module
    the one asked for first comes first. What the call raises, the import raises."""
    if name in sys.modules:
        call()
    else:
        sys.meta_path.insert(0, _Watch(name, call))
