"""What the suites ask and do on the device, at either level: sizes, figures, a stitched tensor, a limit.

Imports gmlake without switching it on: also scripts in processes of their own use this.
"""

import contextlib
import gc

import gmlake
import torch

KiB = 1 << 10
MiB = 1 << 20
GiB = 1 << 30


def is_full():
    return gmlake.enabled() == "full"


def figure(name, device=0):
    """One of gmlake's own figures; 0 before the device's first allocation."""
    return (gmlake.stats(device) or {}).get(name, 0)


def allocated(device=0):
    """Bytes in live blocks."""
    return torch.cuda.memory_allocated(device) if is_full() else figure("live", device)


def reserved(device=0):
    """Bytes of physical memory held."""
    return torch.cuda.memory_reserved(device) if is_full() else figure("reserved", device)


def settle():
    """Everything that nothing refers to any more is given back to the driver."""
    gc.collect()
    torch.cuda.synchronize()
    for device in range(torch.cuda.device_count()):
        if gmlake.stats(device):  # a device that nobody used needn't get a context
            torch.cuda.synchronize(device)
    torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.empty_cache()


def filled(nbytes, byte, device="cuda"):
    return torch.full((nbytes,), byte, dtype=torch.uint8, device=device)


def wrong(tensor, value):
    """1 if any element is not `value`, 0 otherwise; a tensor on the device, so that nothing waits. Takes a byte an
    element (a sum would take eight)."""
    return (tensor != value).any().to(torch.int32)


def stitched(parts=4, part=64 * MiB, device=0):
    """A tensor of `parts * part` bytes over memory that is scattered, and the tensors that keep it so.

    Every second of a row of equal blocks is freed; together they are what is then asked for, and no two of them touch.
    Free memory in one piece from before would serve just as well, and is taken up until there is none.
    """
    taken_up = []
    for _ in range(8):
        row = [filled(part, 1, f"cuda:{device}") for _ in range(2 * parts)]
        before = figure("stitches_made", device) + figure("stitch_hits", device)
        between = row[1::2]
        del row
        tensor = torch.empty(parts * part, dtype=torch.uint8, device=f"cuda:{device}")
        if figure("stitches_made", device) + figure("stitch_hits", device) > before:
            return tensor, between
        taken_up.append((tensor, between))
    raise AssertionError("scattered free memory was not stitched")


@contextlib.contextmanager
def limited(more, device=0):
    """At most `more` bytes beside what is reserved already, through PyTorch's own switch."""
    total = torch.cuda.mem_get_info(device)[1]
    torch.cuda.set_per_process_memory_fraction((reserved(device) + more) / total, device)
    try:
        yield
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0, device)


def is_out_of_memory(error):
    """At the level plain a C function can't raise torch.OutOfMemoryError: there the text has to tell."""
    return isinstance(error, torch.OutOfMemoryError) or str(error).startswith("CUDA out of memory.")


@contextlib.contextmanager
def runs_out():
    """Fails unless its body runs out of memory; `raised.error` is how."""

    class raised:
        error = None

    try:
        yield raised
    except RuntimeError as error:
        assert is_out_of_memory(error), f"another error than out of memory: {error}"
        raised.error = error.with_traceback(None)  # whose frames would keep tensors
        return
    raise AssertionError("should have run out of memory")
