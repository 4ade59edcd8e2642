"""Which memory each of PyTorch's operators reads and writes, and for how long it runs, told to the recording.

Operators are seen as PyTorch dispatches them, below autograd, in the backward pass too. What they touch is told by
storage, as a tensor's memory is allocated as one. What goes by unseen: kernels that are launched by other means, such as
those inside a compiled function, and CUDA graphs, which are captured once and then replayed.
"""

from __future__ import annotations

import collections
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .library import Library

# Names are aten's, without overloads. These look at a tensor's form, or change it, and leave its memory alone.
_FORM_ONLY = {"dim", "is_contiguous", "is_pinned", "is_same_size", "numel", "record_stream", "resize_as_", "size"}
_FORM_ONLY |= {"storage_offset", "stride", "sym_is_contiguous", "sym_numel", "sym_size", "sym_storage_offset"}
_FORM_ONLY |= {"sym_stride"}
# These allocate memory and write nothing to it.
_UNWRITTEN = {"empty", "empty_like", "empty_permuted", "empty_quantized", "empty_strided", "new_empty"}
_UNWRITTEN |= {"new_empty_strided"}
# These need a tensor for its form only, and write one of that form.
_FORMED = {"full_like", "new_full", "new_ones", "new_zeros", "ones_like", "rand_like", "randint_like", "randn_like"}
_FORMED |= {"zeros_like"}
# These write what they change without reading it.
_OVERWRITING = {"_foreach_copy_", "_foreach_zero_", "bernoulli_", "cauchy_", "copy_", "exponential_", "fill_"}
_OVERWRITING |= {"geometric_", "log_normal_", "normal_", "random_", "uniform_", "zero_"}
# These change what their schemas don't say, and those that have such an argument only while it is true.
_RUNNING = ("running_mean", "running_var")
_UNDECLARED = {
    "_batch_norm_impl_index": _RUNNING,
    "batch_norm": _RUNNING,
    "batch_norm_gather_stats": _RUNNING,
    "batch_norm_gather_stats_with_counts": _RUNNING,
    "batch_norm_update_stats": _RUNNING,
    "cudnn_batch_norm": _RUNNING,
    "instance_norm": _RUNNING,
    "miopen_batch_norm": _RUNNING,
    "native_batch_norm": _RUNNING,
    "rrelu_with_noise": ("noise",),
}
_ONLY_WHILE = ("training", "use_input_stats")


class Sink(Protocol):
    """Who is told of operations."""

    def access(self, pointer: int, reads: bool, writes: bool) -> None:
        """The running operation reads or writes the memory that begins there."""

    def operation(self) -> int:
        """The running operation ends. Returns its number, negative where it isn't recorded."""

    def took(self, number: int, nanoseconds: int) -> None:
        """How long an operation took."""


class Recorded:
    """The recording of the library, as a `Sink`."""

    def __init__(self, library: Library):
        self._library = library

    def access(self, pointer: int, reads: bool, writes: bool) -> None:
        self._library.do("gmlake_note_access", pointer, reads, writes)

    def operation(self) -> int:
        return self._library.number("gmlake_note_operation")

    def took(self, number: int, nanoseconds: int) -> None:
        self._library.do("gmlake_operation_took", number, nanoseconds)


def storage(tensor: torch.Tensor) -> int | None:
    """Where a tensor's memory begins; None for one that has none, or not in one piece."""
    if not _plain(type(tensor)):
        return None
    try:
        return tensor.untyped_storage().data_ptr() or None
    except (NotImplementedError, RuntimeError):  # of sparse tensors
        return None


def touched(
    function: Any,
    arguments: tuple[Any, ...],
    keywords: dict[str, Any],
    result: Any,
    counts: Callable[[torch.Tensor], bool],
) -> dict[int, tuple[bool, bool]]:
    """What an operator has read and written: by where a storage begins, in order of first mention. Only of tensors that
    count. `result` is what it has returned.

    The schema says which arguments are changed; the others are read. What is returned was written, unless it is an
    argument's memory: then nothing was, and an operator that gives back nothing else has made a view. A change counts
    as a write alone only if nothing of the old contents is left or needed. Linear in the tensors.
    """
    found: dict[int, tuple[bool, bool]] = {}
    given: set[int] = set()

    def note(tensor: torch.Tensor, pointer: int | None, reads: bool, writes: bool) -> None:
        if pointer is not None and counts(tensor):
            before = found.get(pointer, (False, False))
            found[pointer] = before[0] or reads, before[1] or writes

    rules = _rules(function)
    if rules is None:
        return {}
    silent = any(keywords.get(name) is False for name in _ONLY_WHILE)
    for i, value in enumerate(arguments):
        silent = silent or (value is False and rules.at(i).name in _ONLY_WHILE)
    given_to = [(rules.at(i), value) for i, value in enumerate(arguments)]
    given_to += [(rules.named(name), value) for name, value in keywords.items()]
    for rule, value in given_to:
        for tensor in _tensors(value):
            pointer = storage(tensor)
            given.add(pointer or 0)
            if rule.undeclared and silent:
                note(tensor, pointer, True, False)
            elif rule.reads or rule.writes:
                note(tensor, pointer, rule.reads or not _covers(tensor), rule.writes)

    returned = [(tensor, storage(tensor)) for tensor in _tensors(result)]
    writes = any(writes for _, writes in found.values())
    if returned and not writes and all(pointer in given for _, pointer in returned):
        return {}
    for tensor, pointer in returned:
        if pointer is not None and pointer not in given:
            note(tensor, pointer, not _covers(tensor), True)
    return found


class _Rule(NamedTuple):
    """What an operator does with an argument. What it only writes it reads nevertheless where that is not all of its
    storage."""

    name: str = ""
    reads: bool = True
    writes: bool = False
    undeclared: bool = False


class _Rules:
    """What an operator does with its arguments, in their order. What its schema doesn't name is read."""

    def __init__(self, rules: list[_Rule], other: _Rule):
        self._rules, self._other = rules, other
        self._by_name = {rule.name: rule for rule in rules}

    def at(self, i: int) -> _Rule:
        return self._rules[i] if i < len(self._rules) else self._other

    def named(self, name: str) -> _Rule:
        return self._by_name.get(name, self._other)


@functools.cache
def _rules(function: Any) -> _Rules | None:
    """None for operators that touch nothing."""
    schema = getattr(function, "_schema", None)
    if schema is None:  # a higher-order operator, such as one that launches a kernel of Triton's
        return _Rules([], _Rule(writes="mutation" in str(function)))
    space, _, name = schema.name.partition("::")
    own = space == "aten"
    if space == "prim" or torch.Tag.inplace_view in function.tags or (own and name in _FORM_ONLY | _UNWRITTEN):
        return None
    rules = []
    for argument in schema.arguments:
        if argument.alias_info is not None and argument.alias_info.is_write:
            overwritten = argument.is_out or (own and name in _OVERWRITING)
            rules.append(_Rule(argument.name, reads=not overwritten, writes=True))
        elif own and argument.name in _UNDECLARED.get(name, ()):
            rules.append(_Rule(argument.name, writes=True, undeclared=True))
        else:  # the schemas of c10d declare nothing
            rules.append(_Rule(argument.name, reads=not (own and name in _FORMED), writes=space == "c10d"))
    return _Rules(rules, _Rule())


class AccessMode(TorchDispatchMode):
    """Tells a sink of every operator that touches tensors that count, which are those on CUDA devices unless others are
    named. `clock` times them."""

    supports_higher_order_operators = True

    def __init__(self, sink: Sink, clock: Any, counts: Callable[[torch.Tensor], bool] | None = None):
        super().__init__()
        self._sink = sink
        self._clock = clock
        self._counts = counts or _on_cuda

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        keywords = kwargs or {}
        special = [t for t in types if not _plain(t)]
        if special:
            # A tensor that wraps others is unwrapped first, and their operators then come by here. Others have no memory.
            wrapped = all(hasattr(t, "__tensor_flatten__") for t in special)
            return NotImplemented if wrapped else func(*args, **keywords)
        began = self._clock.begin(args, keywords)
        result = func(*args, **keywords)
        ran = self._clock.end(began)
        found = touched(func, args, keywords, result, self._counts)
        number = -1
        if found:
            for pointer, (reads, writes) in found.items():
                self._sink.access(pointer, reads, writes)
            number = self._sink.operation()
        self._clock.of(ran, number)
        return result


class CudaClock:
    """Times operators with a pair of events each, on the device's current stream. A time is told once the device has
    passed the second event, while later operators run, or when it is waited for."""

    def __init__(self, took: Callable[[int, int], None]):
        self._took = took
        self._spare: dict[Any, collections.deque[Any]] = {}  # an event stays on its device
        self._under_way: collections.deque[tuple[int, Any, Any]] = collections.deque()
        self._telling = threading.Lock()  # of several threads one is enough

    def begin(self, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, Any] | None:
        """Before an operator; None for one that is not on a GPU, or is captured and so doesn't run."""
        device = device_of(arguments, keywords)
        if device is None or torch.cuda.is_current_stream_capturing():
            return None
        stream = torch.cuda.current_stream(device)
        return stream, self._recorded(stream)

    def end(self, began: tuple[Any, Any] | None) -> tuple[Any, Any] | None:
        """Right after it: what the host does next may not count."""
        if began is None:
            return None
        stream, first = began
        return first, self._recorded(stream)

    def of(self, ran: tuple[Any, Any] | None, number: int) -> None:
        """Which operation that was; with a negative number its time is forgotten."""
        if ran is None:
            return
        if number < 0:
            self._spares(ran[0]).extend(ran)
            return
        self._under_way.append((number, *ran))
        self.tell()

    def tell(self, wait: bool = False) -> None:
        """Tells the times that are known, or waits for the device and tells all."""
        if not self._telling.acquire(blocking=wait):
            return
        try:
            while self._under_way:
                number, first, last = self._under_way[0]
                if wait:
                    last.synchronize()
                elif not last.query():
                    return
                self._under_way.popleft()
                self._took(number, max(0, round(first.elapsed_time(last) * 1e6)))
                self._spares(first).extend((first, last))
        finally:
            self._telling.release()

    def _recorded(self, stream: Any) -> Any:
        try:
            event = self._spares(stream).pop()
        except IndexError:
            event = torch.cuda.Event(enable_timing=True)
        event.record(stream)
        return event

    def _spares(self, of: Any) -> collections.deque[Any]:
        return self._spare.setdefault(of.device, collections.deque())


def device_of(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> torch.device | None:
    """The CUDA device that an operator runs on, by its arguments."""
    for tensor in _tensors((arguments, keywords)):
        if tensor.device.type == "cuda":
            return tensor.device
    named = keywords.get("device")
    device = None if named is None else torch.device(named)
    return device if device is not None and device.type == "cuda" else None


def storages(of: Any) -> Iterator[int]:
    """Where the memory of tensors and of modules' parameters and buffers begins."""
    if isinstance(of, torch.nn.Module):
        for tensor in (*of.parameters(), *of.buffers()):
            yield from storages(tensor)
    else:
        for tensor in _tensors(of):
            pointer = storage(tensor)
            if pointer is not None:
                yield pointer


def _plain(kind: type) -> bool:
    """Whether PyTorch dispatches the operators of such tensors itself, as it does for parameters too."""
    return getattr(kind, "__torch_dispatch__", None) is torch.Tensor.__torch_dispatch__


def _on_cuda(tensor: torch.Tensor) -> bool:
    return tensor.device.type == "cuda"


def _covers(tensor: torch.Tensor) -> bool:
    """Whether writing the tensor writes all of its storage."""
    return tensor.numel() * tensor.element_size() == tensor.untyped_storage().nbytes()


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in what operators take and give, however deep."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _tensors(one)
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _tensors(one)
