"""The C interface of the adapter's shared libraries, bound with ctypes.

There are two, with the same functions: `full`, which is built against one version of PyTorch and takes the place of its
allocator, and `plain`, which any PyTorch takes for a pluggable one. Nothing here imports PyTorch; `full` can only be
loaded once it has been.
"""

from __future__ import annotations

import ctypes
import pathlib
import re
import sys

FOLDER = pathlib.Path(__file__).parent / "lib"
ABI_VERSION = 6
LEVELS = ("full", "plain")

_STATUS = _TEXT = ctypes.c_char_p
_SIGNATURES = {
    "gmlake_abi_version": (ctypes.c_int, []),
    "gmlake_configure": (_STATUS, [ctypes.c_char_p]),
    "gmlake_settings": (_TEXT, []),
    "gmlake_notes": (_TEXT, []),
    "gmlake_device_count": (ctypes.c_int, []),
    "gmlake_stats": (_TEXT, [ctypes.c_int]),
    "gmlake_snapshot": (_TEXT, [ctypes.c_int]),
    "gmlake_note_update": (ctypes.c_int, []),
    "gmlake_save_plans": (_STATUS, [ctypes.c_int, ctypes.c_char_p]),
    "gmlake_trim": (_STATUS, [ctypes.c_int]),
    "gmlake_set_limit": (_STATUS, [ctypes.c_int, ctypes.c_ulonglong]),
    "gmlake_retire_stream": (_STATUS, [ctypes.c_int, ctypes.c_void_p]),
    "gmlake_placement": (ctypes.c_int, [ctypes.c_int]),
    "gmlake_swap_open": (_STATUS, [ctypes.c_int]),
    "gmlake_swappable": (ctypes.c_longlong, [ctypes.c_longlong]),
    "gmlake_swap_out": (_STATUS, [ctypes.c_void_p, ctypes.c_void_p]),
    "gmlake_swap_in": (_STATUS, [ctypes.c_void_p, ctypes.c_void_p]),
    "gmlake_prefetch": (_STATUS, [ctypes.c_void_p]),
    "gmlake_swap_check": (_STATUS, [ctypes.c_void_p]),
    "gmlake_swap_smallest": (ctypes.c_ulonglong, []),
    "gmlake_pin": (_STATUS, [ctypes.c_void_p, ctypes.c_void_p]),
    "gmlake_unpin": (_STATUS, [ctypes.c_void_p]),
    "gmlake_read_only": (_STATUS, [ctypes.c_void_p, ctypes.c_int]),
    "gmlake_pause": (_STATUS, [ctypes.c_int, ctypes.c_longlong, ctypes.c_int, ctypes.POINTER(ctypes.c_ulonglong)]),
    "gmlake_resume": (_STATUS, [ctypes.c_int, ctypes.c_longlong, ctypes.POINTER(ctypes.c_ulonglong)]),
    "gmlake_pin_host": (_STATUS, [ctypes.c_int, ctypes.c_ulonglong]),
    "gmlake_page_start": (_STATUS, [ctypes.c_int, ctypes.c_ulonglong]),
    "gmlake_page_stop": (_STATUS, [ctypes.c_int, ctypes.c_ulonglong]),
    "gmlake_page_access": (
        _STATUS,
        [ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p],
    ),
    "gmlake_page_operation": (ctypes.c_longlong, [ctypes.c_int, ctypes.c_void_p]),
    "gmlake_page_took": (None, [ctypes.c_int, ctypes.c_longlong, ctypes.c_longlong]),
    "gmlake_page_step": (None, [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]),
    "gmlake_job_begin": (_STATUS, [ctypes.c_int, ctypes.c_void_p, ctypes.c_uint]),
    "gmlake_job_end": (_STATUS, [ctypes.c_int, ctypes.c_void_p]),
    "gmlake_record_start": (_STATUS, []),
    "gmlake_record_mark": (_STATUS, [ctypes.c_char_p]),
    "gmlake_note_access": (_STATUS, [ctypes.c_void_p, ctypes.c_int, ctypes.c_int]),
    "gmlake_note_operation": (ctypes.c_longlong, []),
    "gmlake_operation_took": (_STATUS, [ctypes.c_longlong, ctypes.c_longlong]),
    "gmlake_note_host_copy": (_STATUS, [ctypes.c_void_p]),
    "gmlake_record_stop": (_STATUS, []),
    "gmlake_record_text": (ctypes.c_void_p, [ctypes.c_int, ctypes.POINTER(ctypes.c_size_t)]),
    "gmlake_report": (_STATUS, [ctypes.c_char_p]),
}
_OF_THE_FULL_ONE = {
    "gmlake_install": (_STATUS, []),
    "gmlake_torch_version": (_TEXT, []),
    "gmlake_page_operators": (_STATUS, [ctypes.c_int]),
    "gmlake_page_wrapped": (_STATUS, []),
}


class Error(RuntimeError):
    """What gmlake was asked to do can't be done. The text says why, and for settings what is known."""


class Library:
    """One of the shared libraries, loaded. Its strings are copied before the next call may overwrite them."""

    def __init__(self, level: str):
        """Raises `Error` where the library was not built, can't be loaded, or is of another version."""
        self.level = level
        self.path = FOLDER / f"libgmlake_torch_{level}.so"
        if not self.path.exists():
            raise Error(f"gmlake: the library of the level '{level}' was not built: there is no {self.path}")
        try:
            self._loaded = ctypes.CDLL(str(self.path))
            signatures = _SIGNATURES | (_OF_THE_FULL_ONE if level == "full" else {})
            for name, (result, arguments) in signatures.items():
                function = getattr(self._loaded, name)
                function.restype, function.argtypes = result, arguments
        except (OSError, AttributeError) as error:
            raise Error(f"gmlake: {self.path} can't be loaded: {error}") from error
        version = self._loaded.gmlake_abi_version()
        if version != ABI_VERSION:
            raise Error(f"gmlake: {self.path} has interface {version} and this package {ABI_VERSION}; install it anew")
        if level == "full":
            built_for, found = (
                self.text("gmlake_torch_version"),
                getattr(sys.modules.get("torch"), "__version__", "none"),
            )
            if _release(built_for) != _release(found):
                raise Error(
                    f"gmlake: {self.path} was built for PyTorch {built_for}, and this is {found}; install it anew"
                )

    def do(self, name: str, *arguments: object) -> None:
        """Calls a function that returns a status. Raises `Error` with its text."""
        wrong = getattr(self._loaded, name)(*arguments)
        if wrong is not None:
            raise Error(wrong.decode(errors="replace"))

    def text(self, name: str, *arguments: object) -> str | None:
        """What a function that returns text says; None where it has nothing to speak of."""
        said = getattr(self._loaded, name)(*arguments)
        return None if said is None else said.decode(errors="replace")

    def number(self, name: str, *arguments: object) -> int:
        """What a function that returns a number says."""
        return getattr(self._loaded, name)(*arguments)

    def trace(self, device: int) -> bytes | None:
        """What was recorded on a device so far; None where nothing was. Linear."""
        length = ctypes.c_size_t()
        begin = self._loaded.gmlake_record_text(device, ctypes.byref(length))
        return None if begin is None else ctypes.string_at(begin, length.value)

    def pointer(self, name: str) -> int:
        """The address of a function, as PyTorch's pluggable allocator takes it."""
        return ctypes.cast(getattr(self._loaded, name), ctypes.c_void_p).value


def _release(version: str) -> str:
    """2.11.0 of 2.11.0+cu130: what decides whether C++ fits."""
    found = re.match(r"\d+\.\d+\.\d+", version)
    return version if found is None else found[0]
