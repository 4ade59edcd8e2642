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

from .library import Error, Library

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


Uses = dict[int, tuple[bool, bool]]  # where a storage begins: whether it is read, and written


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
    if not is_plain(type(tensor)):
        return None
    try:
        return tensor.untyped_storage().data_ptr() or None
    except (NotImplementedError, RuntimeError):  # of sparse tensors
        return None


def uses(
    function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any], counts: Callable[[torch.Tensor], bool]
) -> tuple[Uses, set[int]] | None:
    """What an operator is to read and write of its arguments: by where a storage begins, in order of first mention, only
    of tensors that count; and where all of their storages begin. None for operators that touch nothing. Linear in the
    tensors.

    The schema says which arguments are changed; the others are read. A change counts as a write alone only if nothing of
    the old contents is left or needed.
    """
    rules = _rules(function)
    if rules is None:
        return None
    found: Uses = {}
    given: set[int] = set()
    silent = any(keywords.get(name) is False for name in _ONLY_WHILE)
    for i, value in enumerate(arguments):
        silent = silent or (value is False and rules.at(i).name in _ONLY_WHILE)
    given_to = [(rules.at(i), value) for i, value in enumerate(arguments)]
    given_to += [(rules.named(name), value) for name, value in keywords.items()]
    for rule, value in given_to:
        for tensor in _tensors(value):
            pointer = storage(tensor)
            given.add(pointer or 0)
            if pointer is None or not counts(tensor):
                continue
            if rule.undeclared and silent:
                _note(found, pointer, True, False)
            elif rule.reads or rule.writes:
                _note(found, pointer, rule.reads or not _covers(tensor), rule.writes)
    return found, given


def made(result: Any, given: set[int], counts: Callable[[torch.Tensor], bool]) -> Uses:
    """What an operator has written of what it has returned, but for memory that it was given. Linear in the tensors."""
    found: Uses = {}
    for tensor in _tensors(result):
        pointer = storage(tensor)
        if pointer is not None and pointer not in given and counts(tensor):
            _note(found, pointer, not _covers(tensor), True)
    return found


def touched(
    function: Any,
    arguments: tuple[Any, ...],
    keywords: dict[str, Any],
    result: Any,
    counts: Callable[[torch.Tensor], bool],
) -> Uses:
    """What an operator has read and written, `result` being what it has returned: that was written, unless it is an
    argument's memory. Then nothing was, and an operator that gives back nothing else has made a view, and touched
    nothing. Linear in the tensors."""
    used = uses(function, arguments, keywords, counts)
    if used is None:
        return {}
    found, given = used
    returned = [storage(tensor) for tensor in _tensors(result)]
    writes = any(writes for _, writes in found.values())
    if returned and not writes and all(pointer in given for pointer in returned):
        return {}
    return found | made(result, given, counts)


@functools.cache
def makes_view(function: Any) -> bool:
    """Whether an operator returns nothing but its arguments' memory, unchanged. Not those made of others, which come whole
    in inference mode: they copy where a view won't do."""
    schema = getattr(function, "_schema", None)
    returns = () if schema is None else schema.returns
    views = bool(returns) and all(r.alias_info is not None and not r.alias_info.is_write for r in returns)
    composite = torch._C.DispatchKey.CompositeImplicitAutograd
    return views and not torch._C._dispatch_has_kernel_for_dispatch_key(function.name(), composite)


@functools.cache
def lingers(function: Any) -> bool:
    """Whether other streams may use an operator's memory still when it has been launched, as collectives do."""
    space = str(function).partition(".")[0]
    return space in ("c10d", "symm_mem") or space.startswith("_c10d_functional")


def _note(found: Uses, pointer: int, reads: bool, writes: bool) -> None:
    before = found.get(pointer, (False, False))
    found[pointer] = before[0] or reads, before[1] or writes


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
        self._counts = counts or on_cuda

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        keywords = kwargs or {}
        if special := [t for t in types if not is_plain(t)]:
            return NotImplemented if wrap_others(special) else func(*args, **keywords)
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
    passed the second event, while later operators run, or when it is waited for.

    Exact: the device is kept behind the host, so that no time counts how long it waits for that: now and then it does
    nothing for a while.
    """

    IDLE_EVERY = 128  # operators; with their events, fewer than a stream takes before the host has to wait
    IDLE_CYCLES = 150_000_000  # of the device's clock: about 80 ms, in which the host launches these

    def __init__(self, took: Callable[[int, int], None], exact: bool = False):
        self._took = took
        self._exact = exact
        self._begun = 0
        self._spare: dict[Any, collections.deque[Any]] = {}  # an event stays on its device
        self._under_way: collections.deque[tuple[int, Any, Any]] = collections.deque()
        self._telling = threading.Lock()  # of several threads one is enough

    def begin(self, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, Any] | None:
        """Before an operator; None for one that is not on a GPU, or is captured and so doesn't run."""
        device = device_of(arguments, keywords)
        if device is None or torch.cuda.is_current_stream_capturing():
            return None
        stream = torch.cuda.current_stream(device)
        if self._exact and self._begun % self.IDLE_EVERY == 0:
            torch.cuda._sleep(self.IDLE_CYCLES)
        self._begun += 1
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
    for tensor in tensors_in(of):
        pointer = storage(tensor)
        if pointer is not None:
            yield pointer


def tensors_in(of: Any) -> Iterator[torch.Tensor]:
    """Tensors, and modules' parameters and buffers, however deep. Raises `Error` for anything else, unless it is in a
    dictionary, as optimizers' states hold numbers too."""
    if isinstance(of, torch.nn.Module):
        yield from of.parameters()
        yield from of.buffers()
    elif isinstance(of, (list, tuple)):
        for one in of:
            yield from tensors_in(one)
    elif isinstance(of, (torch.Tensor, dict)):
        yield from _tensors(of)
    else:
        raise Error(f"gmlake: it takes tensors, modules, and lists, tuples and dictionaries of them, but not {of!r}")


def wrap_others(kinds: list[type]) -> bool:
    """Whether tensors of kinds that are not plain are made of others: then they are unwrapped first, and their operators
    come by once more. Others have no memory."""
    return all(hasattr(kind, "__tensor_flatten__") for kind in kinds)


def is_plain(kind: type) -> bool:
    """Whether PyTorch dispatches the operators of such tensors itself, as it does for parameters too."""
    return getattr(kind, "__torch_dispatch__", None) is torch.Tensor.__torch_dispatch__


def on_cuda(tensor: torch.Tensor) -> bool:
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
