"""Reads a pickle of plain data: dictionaries, lists, tuples, sets, texts and numbers.

A pickle can name any function and have it called. This reader resolves no name at all, so nothing of it is executed.
"""

from __future__ import annotations

import os
import pickle
from typing import Any

from .library import Error


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        raise Error(f"it asks for {module}.{name}, which is no plain data; nothing of it was executed")

    def persistent_load(self, identifier: Any) -> Any:
        raise Error("it refers to something outside of it")


def read_plain_pickle(path: str | os.PathLike[str]) -> Any:
    """What the file holds. Raises `Error` if it can't be read, is no whole pickle, or holds more than plain data."""
    try:
        with open(path, "rb") as file:
            return _PlainUnpickler(file).load()
    except OSError as error:
        raise Error(f"gmlake: can't read {path}: {error.strerror}") from error
    except Error as error:
        raise Error(f"gmlake: {path} is no snapshot of PyTorch's: {error}") from error
    # The unpickler answers to corrupt bytes with whatever its opcodes run into.
    except Exception as error:
        raise Error(f"gmlake: {path} is no pickle, or a damaged one: {str(error) or type(error).__name__}") from error
