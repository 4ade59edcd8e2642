"""The checks of test_plain.py, run one after the other in a process of its own at the level plain."""

import traceback

import gmlake
import torch
from on_device import GiB, MiB, figure, filled, is_out_of_memory, limited, reserved, runs_out, settle, stitched, wrong


def it_is_pytorchs_allocator():
    """PyTorch allocates through gmlake's library, at the level plain"""
    before = figure("live")
    tensor = filled(64 * MiB, 1)
    assert gmlake.enabled() == "plain"
    assert figure("live") == before + 64 * MiB
    assert wrong(tensor, 1).item() == 0


def a_small_model_trains():
    """a small model trains, on a thread of autograd's, to what it trains to on the CPU"""
    torch.manual_seed(0)
    host = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.Tanh(), torch.nn.Linear(128, 4))
    device = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.Tanh(), torch.nn.Linear(128, 4))
    device.load_state_dict(host.state_dict())
    device.cuda()
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in (host, device)]
    for n in range(20):
        rows = torch.randn(16 + 7 * n, 64)
        losses = [host(rows).square().mean(), device(rows.cuda()).square().mean()]
        for loss, optimizer in zip(losses, optimizers):
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        torch.testing.assert_close(losses[1].detach().cpu(), losses[0].detach(), rtol=1e-3, atol=1e-4)


def scattered_memory_is_stitched():
    """scattered free memory serves as one block"""
    tensor, between = stitched()
    tensor.fill_(5)
    assert wrong(tensor, 5).item() == 0
    assert [wrong(part, 1).item() for part in between] == [0] * 4


def recorded_streams_are_waited_for():
    """a tensor recorded on a side stream is not overwritten before that is done"""
    side = torch.cuda.Stream()
    lent = filled(64 * MiB, 7)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.cuda._sleep(200_000_000)
        seen = lent.clone()
    lent.record_stream(side)
    del lent
    others = [filled(64 * MiB, 1) for _ in range(8)]
    torch.cuda.synchronize()
    assert wrong(seen, 7).item() == 0
    assert all(wrong(tensor, 1).item() == 0 for tensor in others)


def graphs_replay():
    """a graph replays correctly while eager work allocates and empties the cache, and leaves nothing behind"""
    static = torch.zeros(4 * MiB, dtype=torch.int32, device="cuda")
    settle()
    held = []
    for _ in range(3):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            doubled = static * 2
            output = doubled + 1
            del doubled
        for value in range(5):
            other = filled((value + 1) * 16 * MiB, value)
            torch.cuda.empty_cache()
            static.fill_(value)
            graph.replay()
            assert wrong(output, 2 * value + 1).item() == 0
            assert wrong(other, value).item() == 0
        del graph, output, other
        settle()
        held.append(reserved())
    assert held[-1] <= held[0], held


def a_fraction_is_a_limit():
    """set_per_process_memory_fraction limits what is reserved"""
    with limited(GiB + 64 * MiB):  # for `wrong`, too
        kept = filled(512 * MiB, 1)
        with runs_out():
            torch.empty(2 * GiB, dtype=torch.uint8, device="cuda")
        assert wrong(kept, 1).item() == 0
    assert torch.empty(2 * GiB, dtype=torch.uint8, device="cuda").numel() == 2 * GiB


def running_out_says_where_the_memory_is():
    """out of memory is a RuntimeError that begins as PyTorch's and has the pool's account"""
    with limited(GiB), runs_out() as raised:
        torch.empty(2 * GiB, dtype=torch.uint8, device="cuda")
    text = str(raised.error)
    assert text.startswith("CUDA out of memory."), text
    missing = [word for word in ("reserved", "live", "free", "limit") if word not in text.lower()]
    assert not missing, (missing, text)


def running_out_in_backward_can_be_caught():
    """running out in a thread of autograd's is caught where backward was called"""
    x = torch.ones(64 * MiB, device="cuda", requires_grad=True)
    y = (x * 2).sum()
    settle()
    with limited(64 * MiB):
        try:
            y.backward()
        except RuntimeError as error:
            assert is_out_of_memory(error), error
        else:
            raise AssertionError("should have run out of memory")
    (x * 2).sum().backward()
    assert wrong(x.grad, 2).item() == 0


def emptying_the_cache_gives_memory_back():
    """empty_cache gives memory back to the device"""
    before = torch.cuda.mem_get_info()[0]
    tensor = filled(GiB, 1)
    del tensor
    assert torch.cuda.mem_get_info()[0] <= before - GiB + 64 * MiB
    torch.cuda.empty_cache()
    assert torch.cuda.mem_get_info()[0] >= before - 64 * MiB


CHECKS = [
    it_is_pytorchs_allocator,
    a_small_model_trains,
    scattered_memory_is_stitched,
    recorded_streams_are_waited_for,
    graphs_replay,
    a_fraction_is_a_limit,
    running_out_says_where_the_memory_is,
    running_out_in_backward_can_be_caught,
    emptying_the_cache_gives_memory_back,
]


def outcomes():
    """Each check's name to how it failed, "" where it held."""
    found = {}
    for check in CHECKS:
        try:
            settle()
            check()
            found[check.__name__] = ""
        except Exception:
            found[check.__name__] = traceback.format_exc()
    return found
