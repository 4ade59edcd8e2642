"""Tensors that leave for host memory and come back at the same addresses: by hand, in groups, and by a pager that keeps a
training loop within a limit."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

from . import activation
from .figures import parse_stats
from .library import Error, Library

_groups: dict[Hashable, int] = {None: 0}  # tags by number
_stepping: list[Callable[[], None]] = []  # told of the steps that the program marks
_paged: dict[int, Any] = {}  # the device that is, and the steps there


@contextlib.contextmanager
def swappable(device: int, tag: Hashable) -> Iterator[None]:
    """See `gmlake.swappable`."""
    library = activation.switched_on()
    if library is None:
        yield
        return
    library.do("gmlake_swap_open", device)
    before = library.number("gmlake_swappable", _groups.setdefault(tag, len(_groups)))
    try:
        yield
    finally:
        library.number("gmlake_swappable", before)


def move(name: str, what: tuple[Any, ...], on_stream: bool = True) -> None:
    """Calls a function of the library for each memory that can leave of tensors, modules and so on."""
    import torch

    library = activation.in_use()
    for pointer, device in _leaving(library, what).items():
        library.do(name, pointer, *([torch.cuda.current_stream(device).cuda_stream] if on_stream else []))


def _leaving(library: Library, what: tuple[Any, ...]) -> dict[int, Any]:
    """Where memory that can leave begins, and on which device. What is small in modules and collections, or is not on a
    GPU, is passed over, as biases and optimizers' counts are. Raises `Error` for all else that can't leave."""
    import torch

    from .operators import storage, tensors_in

    tensors = [(tensor, isinstance(one, torch.Tensor)) for one in what for tensor in tensors_in(one)]
    smallest = library.number("gmlake_swap_smallest")
    found = {}
    for tensor, alone in tensors:
        if alone and not tensor.is_cuda:
            raise Error(f"gmlake: a tensor on {tensor.device} is not in the memory of a GPU")
        pointer = storage(tensor) if tensor.is_cuda else None
        if pointer is None or (not alone and tensor.untyped_storage().nbytes() < smallest):
            continue
        library.do("gmlake_swap_check", pointer)
        found[pointer] = tensor.device
    return found


def read_only(what: Sequence[Any], value: bool) -> None:
    """See `gmlake.read_only`."""
    from .operators import storage, tensors_in

    library = activation.in_use()
    for tensor in [tensor for one in what for tensor in tensors_in(one)]:
        pointer = storage(tensor) if tensor.is_cuda else None
        if pointer is not None:
            library.do("gmlake_read_only", pointer, value)


def pause(device: int, tag: Hashable, keep: bool) -> int:
    """See `gmlake.pause`."""
    if tag not in _groups:
        raise Error(f"gmlake: nothing was made swappable with the tag {tag!r}")
    return _moved(activation.in_use(), "gmlake_pause", device, _groups[tag], int(keep))


def resume(device: int, tag: Hashable) -> int:
    """See `gmlake.resume`."""
    if tag not in _groups:
        raise Error(f"gmlake: nothing was made swappable with the tag {tag!r}")
    return _moved(activation.in_use(), "gmlake_resume", device, _groups[tag])


def _moved(library: Library, name: str, *arguments: int) -> int:
    moved = ctypes.c_ulonglong()
    library.do(name, *arguments, ctypes.byref(moved))
    return moved.value


def step_begins() -> None:
    """The program marks a step."""
    for told in _stepping:
        told()


@contextlib.contextmanager
def paged(device: int, limit: int, frozen: Sequence[Any]) -> Iterator[None]:
    """See `gmlake.swap`."""
    library = activation.in_use()
    if _paged:
        raise Error(f"gmlake: swap() is on already, for device {next(iter(_paged))}")
    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook

    from .paging import Loops, announced

    torch.cuda.init()
    library.do("gmlake_swap_open", device)
    limit_after = parse_stats(library.text("gmlake_stats", device) or "")["limit"]
    _paged[device] = None
    try:
        library.do("gmlake_page_start", device, limit)
        read_only(frozen, True)
        with announced(library, device) as mode:
            loops = _paged[device] = Loops(library, device, mode)

            def marked() -> None:
                loops.here().marked()

            hook = register_optimizer_step_post_hook(lambda *_: loops.here().updated())
            _stepping.append(marked)
            try:
                yield
            finally:
                _stepping.remove(marked)
                hook.remove()
    finally:
        del _paged[device]
        library.do("gmlake_page_stop", device, limit_after)


@contextlib.contextmanager
def job(device: int, priority: int, stream: Any) -> Iterator[Any]:
    """See `gmlake.job`."""
    library = activation.in_use()
    loops = _paged.get(device)
    if loops is None:
        raise Error("gmlake: job() is for what runs inside swap()")
    import torch

    from .paging import announced

    outside = torch.cuda.current_stream(device)
    own = torch.cuda.Stream(device) if stream is None else stream
    own.wait_stream(outside)
    library.do("gmlake_job_begin", device, own.cuda_stream, priority)
    try:
        with torch.cuda.stream(own), announced(library, device) as mode:
            loops.begin(own.cuda_stream, mode)
            try:
                yield own
            finally:
                loops.end(own.cuda_stream)
    finally:
        library.do("gmlake_job_end", device, own.cuda_stream)
        outside.wait_stream(own)
