"""Which library this process allocates from, if any. A process switches once, before CUDA is used."""

from __future__ import annotations

import os
import re
import sys
from typing import Any

from .environment import first_to_tell
from .library import LEVELS, Error, Library
from .pluggable import pluggable
from .recording import asked_by_environment

# What True and False stand for; the other settings have no use for them.
_FLAGS = dict.fromkeys(("wait", "in_place", "leave_mapped", "rdma", "vmm_defragment"), ("0", "1"))
_FLAGS |= {"plan": ("off", "auto")}

_switched_on: Library | None = None
_given: dict[str, object] = {}  # the settings of all calls so far
_beside: tuple[Library, Any] | None = None  # for pools of memory while PyTorch keeps its own allocator


def enable(level: str, settings: dict[str, object]) -> None:
    """See `gmlake.enable`."""
    global _switched_on, _given
    level = _wanted(level)
    if _switched_on is not None:
        if level not in ("auto", _switched_on.level):
            raise Error(f"gmlake: the level is '{_switched_on.level}' already, and can't become '{level}'")
        if settings:
            _configure(_switched_on, _given | settings)
            _given |= settings
        return
    import torch

    if torch.version.cuda is None:
        raise Error("gmlake: this PyTorch is built without CUDA")
    begin_recording = asked_by_environment()
    library = _open(level)
    _configure(library, settings)
    if library.level == "full":
        library.do("gmlake_install")
    else:
        try:
            torch.cuda.memory.change_current_allocator(pluggable(library))
        except RuntimeError as error:
            raise Error(
                f"gmlake: CUDA is in use already, with another allocator; enable gmlake first: {error}"
            ) from error
    _switched_on, _given = library, settings
    _tell_notes(library)
    _note_updates(library)
    begin_recording(library)


def enabled() -> str | None:
    """See `gmlake.enabled`."""
    return None if _switched_on is None else _switched_on.level


def switched_on() -> Library | None:
    """The library that PyTorch allocates from, or None."""
    return _switched_on


def in_use() -> Library:
    """The library that something can be asked of. Raises `Error` where there is none."""
    if _switched_on is not None:
        return _switched_on
    if _beside is not None:
        return _beside[0]
    raise Error("gmlake: not switched on; call gmlake.enable() before CUDA is used")


def allocator() -> Any:
    """See `gmlake.allocator`."""
    global _beside
    if _beside is None:
        library = _switched_on if enabled() == "plain" else Library("plain")
        if library is not _switched_on:
            _configure(library, {})
            _tell_notes(library)
        _beside = library, pluggable(library)
    return _beside[1]


def check_settings() -> None:
    """Raises `Error` where no library was built, or what the environment asks for makes no sense. Needs no PyTorch."""
    _wanted("auto")
    asked_by_environment()
    _configure(Library("plain"), {})


def _note_updates(library: Library) -> None:
    """Lets the pools know of each optimizer's updates, by which they tell a training step from a loop within it. An
    older PyTorch has no such hook: then steps are planned once they have come more often."""
    import torch

    try:
        from torch.optim.optimizer import register_optimizer_step_post_hook
    except ImportError:
        return

    def updated(*_: object) -> None:
        # Traced, it must leave no trace: a compiled optimizer is to stay in one piece.
        if not torch.compiler.is_compiling():
            library.number("gmlake_note_update")

    register_optimizer_step_post_hook(updated)


def _wanted(level: str) -> str:
    if level == "auto":
        level = os.environ.get("GMLAKE_LEVEL") or "auto"
    if level not in ("auto", *LEVELS):
        raise Error(f"gmlake: no level is named '{level}'; there are: auto, {', '.join(LEVELS)}")
    return level


def _open(level: str) -> Library:
    if level != "auto":
        return Library(level)
    try:
        return Library("full")
    except Error as error:
        library = Library("plain")
        if (library.path.parent / "libgmlake_torch_full.so").exists():
            _tell(f"{error}\ngmlake: so it is switched on at the level 'plain'")
        return library


def _configure(library: Library, settings: dict[str, object]) -> None:
    lines = []
    for name, value in settings.items():
        text = _FLAGS[name][value] if isinstance(value, bool) and name in _FLAGS else str(value)
        if re.search(r"[\n\0]", line := f"{name}={text}"):
            raise Error(f"gmlake: a setting is a text of one line, and not {line!r}")
        lines.append(f"{line}\n")
    library.do("gmlake_configure", "".join(lines).encode())


def _tell_notes(library: Library) -> None:
    for note in (library.text("gmlake_notes") or "").splitlines():
        _tell(note)


def _tell(note: str) -> None:
    # Once, whatever processes are started, and of several ranks only the first one's.
    if os.environ.get("RANK", "0") == "0" and first_to_tell(note):
        print(note, file=sys.stderr)
