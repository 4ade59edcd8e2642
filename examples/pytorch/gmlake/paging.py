"""Keeps what PyTorch's operators work on within a limit of device memory: each is announced to the pager before it is
launched, and told of when it has been."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .library import Library
from .operators import CudaClock, Uses, device_of, is_plain, lingers, made, makes_view, on_cuda, uses, wrap_others


def current_stream(device: int) -> int:
    """The handle of the stream that this thread's operators run on."""
    return torch._C._cuda_getCurrentRawStream(device)


class Pager(Protocol):
    """Who is told of operators."""

    def access(self, uses: Uses) -> None:
        """The running operator is to use these. Raises where they can't be brought in."""

    def keep(self, uses: Uses) -> None:
        """The same, and they are used still when it has ended: they stay for good."""

    def operation(self) -> int:
        """It has been launched. Returns its number, negative where it isn't counted."""


class DevicePager:
    """The library's pager of one device, which sees the current stream's operators."""

    def __init__(self, library: Library, device: int):
        self._library, self._device = library, device

    def access(self, uses: Uses) -> None:
        self._announce(uses, 0)

    def keep(self, uses: Uses) -> None:
        self._announce(uses, 4)

    def _announce(self, uses: Uses, how: int) -> None:
        blocks = struct.pack(f"{len(uses)}Q", *uses)
        flags = bytes(reads | writes << 1 | how for reads, writes in uses.values())
        self._library.do("gmlake_page_access", self._device, blocks, flags, len(uses), current_stream(self._device))

    def operation(self) -> int:
        return self._library.number("gmlake_page_operation", self._device, current_stream(self._device))

    def took(self, number: int, nanoseconds: int) -> None:
        """How long an operator took on the device."""
        self._library.number("gmlake_page_took", self._device, number, nanoseconds)


class PagingMode(TorchDispatchMode):
    """Announces every operator that uses tensors that count, which are those on the pager's device. `clock` times them
    while `timed`."""

    supports_higher_order_operators = True

    def __init__(self, pager: Pager, clock: Any, counts: Any = None):
        super().__init__()
        self.timed = True
        self._pager = pager
        self._clock = clock
        self._counts = counts or on_cuda

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        keywords = kwargs or {}
        if special := [t for t in types if not is_plain(t)]:
            return NotImplemented if wrap_others(special) else func(*args, **keywords)
        used = None if makes_view(func) else uses(func, args, keywords, self._counts)
        if used is None:
            return func(*args, **keywords)
        found, given = used
        announce = self._pager.keep if lingers(func) else self._pager.access
        number, ran = -1, None
        try:
            if found:
                announce(found)
            began = self._clock.begin(args, keywords) if self.timed else None
            result = func(*args, **keywords)
            ran = self._clock.end(began)
            written = made(result, given, self._counts)
            if written:
                announce(written)
        finally:
            # What was announced is in use until then, whatever went wrong.
            if found or device_of(args, keywords) is not None:
                number = self._pager.operation()
        self._clock.of(ran, number)
        return result


class Steps:
    """Tells the pager where steps begin: where the program marks them, and until it does, behind each optimizer's
    update."""

    TIMED = 4  # steps, from the first on
    TIMED_AGAIN = 8  # by a schedule: it makes the device wait, and so the host be ahead, and times exact
    TIMED_EVERY = 64  # as times drift; until then after twice as many each time, as it makes the host slower

    def __init__(self, begin: Callable[[bool], object]):
        """`begin` is told whether the step's operators are to be timed."""
        self._begin = begin
        self._marked = False
        self._count = 0

    def marked(self) -> None:
        self._marked = True
        self._next()

    def updated(self) -> None:
        if not self._marked:
            self._next()

    def _next(self) -> None:
        self._count += 1
        doubled = self._count >= self.TIMED_AGAIN and self._count.bit_count() == 1
        self._begin(self._count < self.TIMED or doubled or self._count % self.TIMED_EVERY == 0)


class Loops:
    """The steps of all jobs, each on a stream of its own; those on other streams are the program's."""

    def __init__(self, library: Library, device: int, mode: PagingMode):
        self._library, self._device = library, device
        self._steps: dict[int | None, Steps] = {}
        self.begin(None, mode)

    def begin(self, stream: int | None, mode: PagingMode) -> None:
        """A job begins. `mode` is its thread's."""

        def step(timed: bool) -> None:
            mode.timed = timed
            on = stream or current_stream(self._device)
            self._library.number("gmlake_page_step", self._device, on, int(timed))

        self._steps[stream] = Steps(step)

    def end(self, stream: int) -> None:
        self._steps.pop(stream, None)

    def here(self) -> Steps:
        """Those of the job whose stream is the current one."""
        return self._steps.get(current_stream(self._device)) or self._steps[None]


@contextlib.contextmanager
def announced(library: Library, device: int) -> Iterator[PagingMode]:
    """This thread's operators are announced inside, and those of its backward passes. The full library sees them itself,
    but for those on tensors that wrap others; beside the plain one, PyTorch's Python dispatch shows them all."""
    pager = DevicePager(library, device)
    clock = CudaClock(pager.took)
    mode = PagingMode(pager, clock)
    full = library.level == "full"
    if full:
        with mode:
            library.do("gmlake_page_wrapped")
        library.do("gmlake_page_operators", 1)
    try:
        with contextlib.nullcontext() if full else mode:
            yield mode
    finally:
        if full:
            library.do("gmlake_page_operators", 0)
        clock.tell(wait=True)
