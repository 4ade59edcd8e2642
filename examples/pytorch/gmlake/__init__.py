"""gmlake as PyTorch's CUDA memory allocator: scattered free memory is stitched to contiguous blocks.

    import gmlake
    gmlake.enable()                       # before CUDA is used

or, with a program left as it is, `python -m gmlake train.py …`. Sizes are in bytes; where one is taken, a text such as
"30GiB" will do too. `device` is a number, a `torch.device` or its name, and the current device where it is left out.
What goes wrong is an `Error`, a RuntimeError that says why.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Hashable, Iterator
from typing import Any

from . import activation, swapping
from .figures import parse_snapshot, parse_stats
from .library import Error
from .recording import Recording, path_text

__all__ = [
    "Error",
    "Recording",
    "accesses",
    "allocator",
    "enable",
    "enabled",
    "frozen",
    "job",
    "mark",
    "one_handle",
    "own_chunks",
    "pause",
    "pin",
    "pin_host",
    "prefetch",
    "read_only",
    "record",
    "report",
    "resume",
    "retire_stream",
    "save_plans",
    "set_limit",
    "snapshot",
    "stats",
    "step",
    "swap",
    "swap_in",
    "swap_out",
    "swappable",
    "trim",
    "unpin",
]

_UNITS = {"": 1, "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "KB": 10**3, "MB": 10**6, "GB": 10**9}
_UNITS |= {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_SIZE = re.compile(r"((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)([A-Za-z]*)")
_OWN_CHUNKS, _ONE_HANDLE = 1, 2


def enable(
    preset: str | None = None,
    limit: int | str | None = None,
    chunk: int | str | None = None,
    level: str = "auto",
    **more: object,
) -> None:
    """Lets PyTorch allocate CUDA memory from gmlake, in this process, until it ends.

    `preset`: "lake" (the default) or "gmlake", the paper's algorithm. `limit`: memory a device at most, also as part of
    it, "90%". `chunk`: the size of all chunks, where the pool is not to choose. `level`: "full" has all that PyTorch's
    own allocator has, and must have been built against this PyTorch; "plain" is a pluggable allocator; "auto" is
    GMLAKE_LEVEL if that is set, and otherwise the better one there is. `more`: any other setting by its name; those
    that are on or off may be True or False, and so may `plan`, for "auto" and "off". All go before the environment's
    (GMLAKE_LIMIT and so on).

    Called again, it adds to the settings that were given before, and changes those that are given anew. Raises `Error`,
    and leaves all as it was, when CUDA's memory is in use already, for settings that are not known or make no sense,
    for others than are in force once memory has been allocated, where the library was not built, and where the files
    that GMLAKE_RECORD and GMLAKE_REPORT name can't be written.
    """
    given = {"preset": preset, "limit": limit, "chunk": chunk, **more}
    activation.enable(level, {name: value for name, value in given.items() if value is not None})


def enabled() -> str | None:
    """The level that this process allocates at, "full" or "plain"; None if PyTorch has another allocator."""
    return activation.enabled()


def stats(device: Any = None) -> dict[str, int]:
    """The device's figures by name, such as `requested`, `live`, `reserved` and their `_peak`s, in bytes, counts, and
    nanoseconds where the name ends in `_ns`. Empty before the first allocation. Raises `Error` if switched off."""
    return parse_stats(activation.in_use().text("gmlake_stats", _ordinal(device)) or "")


def snapshot(device: Any = None) -> dict[str, list[dict[str, Any]]]:
    """Where everything is on the device, as lists of dictionaries:

    - `chunks`, physical memory at its home: `pool`, `address`, `size`
    - `blocks`, what the homes are cut into: these, `requested`, `stream`, `state` (free, live, taken by a stitch, or a
      hole without memory) and `pending` (freed, and still used by other streams)
    - `planned`, live blocks where a plan has put them, in memory that is taken: `pool`, `address`, `size`, `requested`,
      `stream`
    - `stitches`: the same, `live`, and the `extents` of `address` and `size` that they map

    A private pool has an id of its own as `pool`; the main one's is "0.0". All are empty before the first allocation.
    Linear in the blocks, which wait meanwhile. Raises `Error` if switched off.
    """
    return parse_snapshot(activation.in_use().text("gmlake_snapshot", _ordinal(device)) or "")


def trim(device: Any = None) -> None:
    """Gives the device's free memory back to the driver. Raises `Error` if nothing was allocated there."""
    activation.in_use().do("gmlake_trim", _ordinal(device))


def save_plans(path: str | os.PathLike[str], device: Any = None) -> None:
    """Writes the plans that the device's pool has made of the program's steps, to be given to a later run of the same
    program (`enable(plan=path)`, GMLAKE_PLAN), which then follows them from its first step on. Raises `Error` where
    there is none, because no step has repeated yet, or plans are off, and when the file can't be written."""
    activation.in_use().do("gmlake_save_plans", _ordinal(device), os.fsencode(path_text(path)))


def set_limit(limit: int | str, device: Any = None) -> None:
    """Sets how much memory the device's pools may hold from now on; what they hold already they keep. Raises `Error`
    for what is no size."""
    activation.in_use().do("gmlake_set_limit", _ordinal(device), _bytes(limit))


def retire_stream(stream: Any) -> None:
    """Says that a stream (`torch.cuda.Stream`, or the handle of one on the current device) is about to be destroyed.
    Its work must be done. PyTorch's own streams need not be retired; they are never destroyed."""
    device = _ordinal(getattr(stream, "device", None))
    activation.in_use().do("gmlake_retire_stream", device, getattr(stream, "cuda_stream", stream))


@contextlib.contextmanager
def one_handle() -> Iterator[None]:
    """What this thread allocates inside is physical memory of one handle, as NCCL's registration, RDMA and other
    processes need it. Does nothing if switched off."""
    with _placement(_ONE_HANDLE):
        yield


@contextlib.contextmanager
def own_chunks() -> Iterator[None]:
    """What this thread allocates inside lies on chunks that nothing else shares. Does nothing if switched off."""
    with _placement(_OWN_CHUNKS):
        yield


@contextlib.contextmanager
def swappable(tag: Hashable = None, device: Any = None) -> Iterator[None]:
    """What this thread allocates inside, from 4 MiB on, can leave for host memory and come back at the same address
    (`swap_out`, `pause`, `swap`). All with one tag is paused and resumed together. Does nothing if switched off."""
    with swapping.swappable(_ordinal(device), tag):
        yield


def swap_out(*what: Any) -> None:
    """Sends the memory of tensors to the host, behind the work queued on the current stream; or of all that is large
    enough in modules, lists, tuples and dictionaries, as optimizers' states are. Until `swap_in`, nothing may use them,
    but they may be freed. Raises `Error` for anything else, for a tensor that can't leave or a large one among them, as
    it was not made inside `swappable`: then nothing has left; and where the host has no memory: then that stays."""
    swapping.move("gmlake_swap_out", what)


def swap_in(*what: Any) -> None:
    """What is queued on the current stream from now on finds these tensors' contents, at their addresses. Raises `Error`
    as `swap_out` does, and where there is no memory: then they are on the host still."""
    swapping.move("gmlake_swap_in", what)


def prefetch(*what: Any) -> None:
    """Starts to bring tensors back, for a `swap_in` to come. Raises `Error` as that does."""
    swapping.move("gmlake_prefetch", what, on_stream=False)


def pin(*what: Any) -> None:
    """Brings tensors back, where they stay, on the memory that they have then, until they are unpinned as often: for who
    registers memory with a network card or the like, or uses it unseen inside `swap`. Takes what `swap_out` takes, and
    raises `Error` as that does."""
    swapping.move("gmlake_pin", what)


def unpin(*what: Any) -> None:
    """Ends a `pin`. Raises `Error` for what is not pinned."""
    swapping.move("gmlake_unpin", what, on_stream=False)


def read_only(*what: Any, value: bool = True) -> None:
    """Says that nobody writes these tensors, or modules' parameters and buffers, from now on, until that ends by a false
    `value`: once they have left, their copy stays on the host, and they leave again without being copied. What writes
    them all the same is lost then, but for operators inside `swap`, which end it. No effect on what can't leave. Raises
    `Error` for what is neither."""
    swapping.read_only(what, value)


def pause(tag: Hashable = None, keep: bool = True, device: Any = None) -> int:
    """Sends everything that was made with that tag to the host, or discards its contents, and gives the memory back to
    the device; waits until it has. Returns the bytes that have no memory now. Raises `Error` where some could not leave,
    as what an operator inside `swap` uses at that time: then the others have. It stays paused until `resume`, or until
    something of it is wanted: also when a `swap` ends."""
    return swapping.pause(_ordinal(device), tag, keep)


def resume(tag: Hashable = None, device: Any = None) -> int:
    """Brings everything with that tag back, and waits until it is; discarded contents come back undefined. Returns the
    bytes that have memory now. Inside `swap` others leave for it. Raises `Error` where there is no memory for some."""
    return swapping.resume(_ordinal(device), tag)


def pin_host(size: int | str, device: Any = None) -> None:
    """Makes sure that so much host memory is pinned for what leaves, as that takes long (about 5 GB/s). Raises `Error`
    where there isn't so much."""
    activation.in_use().do("gmlake_pin_host", _ordinal(device), _bytes(size))


@contextlib.contextmanager
def swap(limit: int | str, frozen: Any = (), device: Any = None) -> Iterator[None]:
    """Keeps what runs inside within so much memory of the device:

        with gmlake.swap(limit="16GiB"):
            for batch in batches:
                train(batch)

    What is allocated inside, from 8 MiB on, leaves for the host while it isn't needed, and so does what was made
    inside `swappable` before. At first, what was used longest ago leaves when memory is short; from the third step
    on, or as soon as it has been made in the background, by a schedule learned from the first two. A step ends with
    the optimizer's update, or where `step()` says so. `frozen`: tensors or modules that nobody writes, so that they
    are copied once only.

    Operators are announced as PyTorch dispatches them: at the level plain by way of Python. Kernels that are launched
    by other means (compiled functions, extensions that go past PyTorch's dispatcher) may only use memory that is not
    swappable, and so may other threads than this one, its backward passes and those of `job`: what is away is not
    there, or once a schedule is trusted is others' memory, unless gmlake was enabled with `leave_mapped=0`. What a
    CUDA graph captures inside stays, and so does what collectives use. Raises `Error` if switched off, inside another
    `swap`, and at the end where what has left can't come back for want of memory.
    """
    with swapping.paged(_ordinal(device), _bytes(limit), frozen if isinstance(frozen, (list, tuple)) else (frozen,)):
        yield


@contextlib.contextmanager
def job(priority: int = 0, stream: Any = None, device: Any = None) -> Iterator[Any]:
    """Inside `swap`, in a thread of its own: what runs inside is a job with steps of its own, which shares the limit and
    the link to the host with the others:

        def train(model, batches):
            with gmlake.job():
                for batch in batches:
                    ...
        with gmlake.swap(limit="40GiB"):
            threads = [threading.Thread(target=train, args=job) for job in jobs]

    It runs on `stream`, by default a new one, which is current inside and is what `with` gives: its backward passes are
    told apart from others' by that. Where the jobs' steps do not fit into the limit at once they take turns: a step's first
    operator waits until the other jobs' steps that have begun need little more. Where memory is short all the same, what
    jobs of lower `priority` have leaves first. Jobs may come and go while others run; what one leaves behind counts to the
    program. Raises `Error` if switched off, outside `swap`, for a stream that is a job's already, and for a negative
    priority.
    """
    if priority < 0:
        raise Error(f"gmlake: a job's priority is 0 or more, not {priority}")
    with swapping.job(_ordinal(device), priority, stream) as own:
        yield own


def record(path: str | os.PathLike[str]) -> Recording:
    """Records all allocations from now on, beginning with what is live, as a trace that `gmlake-replay` reads.

    Call `stop()` on what is returned, or use it in a `with`; at the latest it is written when the process ends. Raises
    `Error` if switched off, while another recording runs, and where the path can't be written.
    """
    return Recording(activation.in_use(), path)


@contextlib.contextmanager
def accesses(exact: bool = False) -> Iterator[None]:
    """What is recorded says inside which memory each of PyTorch's operators reads and writes, and how long it runs:

        with gmlake.record("run.csv.gz"), gmlake.accesses():
            …

    That is of the operators which this thread runs, and of its backward passes; each takes tens of microseconds more of
    the host. A time counts from when the device gets to the operator until it is past it, so that where the device
    waits for the host, that is in it; unless times are to be `exact`: then the device idles now and then, to be behind
    the host, and the run takes longer. Kernels that PyTorch does not dispatch one by one, as in compiled functions and
    CUDA graphs, are not seen. Waits for the devices at the end, for the last times. Does nothing if switched off.
    """
    library = activation.switched_on()
    if library is None:
        yield
        return
    from .operators import AccessMode, CudaClock, Recorded

    sink = Recorded(library)
    clock = CudaClock(sink.took, exact)

    def tell() -> None:
        clock.tell(wait=True)

    Recording.before_stopping.append(tell)
    try:
        with AccessMode(sink, clock):
            yield
    finally:
        Recording.before_stopping.remove(tell)
        tell()


def frozen(*what: Any) -> None:
    """Says that the host has a copy of these tensors, or of these modules' parameters and buffers, and that nobody writes
    them from now on: what is recorded tells so, but of those that are written after all. Does nothing if nothing is
    recorded."""
    library = activation.switched_on()
    if library is None:
        return
    from .operators import storages

    for one in what:
        for pointer in storages(one):
            library.do("gmlake_note_host_copy", pointer)


def mark(label: str) -> None:
    """Puts a mark, printable ASCII, into what is being recorded; does nothing otherwise. Raises `Error` for any other
    label."""
    if not isinstance(label, str) or not re.fullmatch(r"[ -~]+", label):
        raise Error(f"gmlake: the mark {label!r} is not printable ASCII")
    library = activation.switched_on()
    if library is not None:
        library.do("gmlake_record_mark", label.encode())


@contextlib.contextmanager
def step() -> Iterator[None]:
    """A training step: writes the mark "step" where it begins, if anything is recorded, and tells `swap`."""
    mark("step")
    swapping.step_begins()
    yield


def report(path: str | os.PathLike[str]) -> None:
    """Writes a page (HTML, complete in itself) about the run so far on all devices. Its course is in it only as far as
    it was recorded. Raises `Error` if switched off, or when the file can't be written."""
    activation.in_use().do("gmlake_report", os.fsencode(path_text(path)))


def allocator() -> Any:
    """A `torch.cuda.memory.CUDAPluggableAllocator` of the plain library, for a pool beside PyTorch's own allocator:

        pool = torch.cuda.MemPool(gmlake.allocator().allocator())
        with torch.cuda.use_mem_pool(pool): …

    The same one each time. Where gmlake is not switched on, `stats` and the others tell of its memory.
    """
    return activation.allocator()


@contextlib.contextmanager
def _placement(where: int) -> Iterator[None]:
    library = activation.switched_on()
    if library is None:
        yield
        return
    before = library.number("gmlake_placement", where)
    try:
        yield
    finally:
        library.number("gmlake_placement", before)


def _ordinal(device: Any) -> int:
    if isinstance(device, int):
        return device
    if device is not None:
        named = re.fullmatch(r"cuda(?::([0-9]+))?", str(device))  # a torch.device's text is its name
        if named is None:
            raise Error(f"gmlake: '{device}' is no CUDA device")
        if named[1] is not None:
            return int(named[1])
    # Nothing is current where CUDA was not used, and asking would begin to use it.
    torch = sys.modules.get("torch")
    return torch.cuda.current_device() if torch is not None and torch.cuda.is_initialized() else 0


def _bytes(size: int | str) -> int:
    # The library's rule for the settings of `enable`.
    n: float = 0
    if type(size) is int:  # and no bool
        n = size
    elif given := _SIZE.fullmatch(str(size)):
        n = float(given[1]) * _UNITS.get(given[2], 0)
        n = 0 if not given[2] and n % 1 else n  # 1.5 is a share, or lacks its unit
    if not 1 <= n < 1 << 60:
        raise Error(f"gmlake: {size!r} is no size; one is 30GiB, say, or a number of bytes, and less than 2**60")
    return int(n)
