"""Tensors shared with another process: it reads and writes the same memory, and sharing leaves nothing behind."""

import gmlake
import pytest
import torch
import torch.multiprocessing
from on_device import MiB, filled, reserved, settle, stitched, wrong

pytestmark = [pytest.mark.full, pytest.mark.slow]

SECONDS = 120


def add_one_to_all(inbox, outbox):
    """The other process: says what each tensor adds up to, and adds one to every element."""
    gmlake.enable(level="full")
    while (tensor := inbox.get()) is not None:
        total = tensor.sum().item()
        tensor.add_(1)
        torch.cuda.synchronize()
        del tensor
        outbox.put((total, torch.cuda.memory_reserved()))


@pytest.fixture(scope="module")
def other():
    """Sends a tensor over, and returns what the other process says of it."""
    context = torch.multiprocessing.get_context("spawn")
    inbox, outbox = context.Queue(), context.Queue()
    process = context.Process(target=add_one_to_all, args=(inbox, outbox))
    process.start()

    def ask(tensor):
        inbox.put(tensor)
        return outbox.get(timeout=SECONDS)

    yield ask
    inbox.put(None)
    process.join(SECONDS)
    assert process.exitcode == 0


def test_the_other_process_reads_and_writes_the_same_memory(other):
    tensor = filled(4 * MiB, 3)
    total, _ = other(tensor)
    assert total == 3 * 4 * MiB
    assert wrong(tensor, 4).item() == 0


@pytest.mark.parametrize("size", [16, 1000, 300_000, 3 * MiB + 512, 100 * MiB])
def test_tensors_of_any_size_are_shared(other, size):
    before, tensor, after = (filled(size, n) for n in (1, 2, 3))
    assert other(tensor)[0] == 2 * size
    assert [wrong(t, n).item() for t, n in ((before, 1), (tensor, 3), (after, 3))] == [0, 0, 0]


def test_a_view_with_an_offset_is_shared_and_no_more(other):
    tensor = filled(8 * MiB, 5)
    assert other(tensor[MiB : 3 * MiB])[0] == 5 * 2 * MiB
    assert wrong(tensor[:MiB], 5).item() == 0
    assert wrong(tensor[MiB : 3 * MiB], 6).item() == 0
    assert wrong(tensor[3 * MiB :], 5).item() == 0


def test_a_strided_view_is_shared(other):
    matrix = torch.arange(1 << 20, device="cuda").view(1024, 1024)
    assert other(matrix.t()[::2])[0] == matrix[:, ::2].sum().item() - 1024 * 512
    assert torch.equal(matrix[:, 1::2], torch.arange(1 << 20, device="cuda").view(1024, 1024)[:, 1::2])


def test_a_stitched_tensor_is_shared(other):
    tensor, between = stitched()
    tensor.fill_(7)
    assert other(tensor)[0] == 7 * tensor.numel()
    assert wrong(tensor, 8).item() == 0
    assert [wrong(t, 1).item() for t in between] == [0] * 4


def test_a_tensor_is_shared_again_and_again(other):
    tensor = filled(MiB, 1)
    assert [other(tensor)[0] for _ in range(5)] == [n * MiB for n in range(1, 6)]
    assert wrong(tensor, 6).item() == 0


def test_freeing_a_shared_tensor_makes_its_memory_usable(other):
    tensor = filled(64 * MiB, 1)
    other(tensor)
    del tensor
    torch.cuda.ipc_collect()
    others = [filled(64 * MiB, n) for n in range(4)]
    assert [wrong(t, n).item() for n, t in enumerate(others)] == [0] * 4


def test_sharing_many_times_grows_neither_process_nor_the_device(other):
    def share(times):
        theirs = 0
        for n in range(times):
            tensor = filled(4 * MiB + 512 * n, 1)
            total, theirs = other(tensor)
            assert total == tensor.numel()
            del tensor
        torch.cuda.ipc_collect()
        settle()
        return reserved(), theirs, torch.cuda.mem_get_info()[0]

    ours, theirs, free = share(20)
    for _ in range(2):
        ours_later, theirs_later, free_later = share(50)
        assert ours_later <= ours + 16 * MiB
        assert theirs_later <= theirs + 16 * MiB
        assert free_later >= free - 64 * MiB
