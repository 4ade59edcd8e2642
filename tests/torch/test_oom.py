"""Running out of memory is an error that a program can read, catch and go on from."""

import math

import pytest
import torch
from on_device import GiB, MiB, filled, is_full, is_out_of_memory, limited, runs_out, settle, wrong

TiB = 1 << 40


def test_running_out_is_the_levels_own_error():
    with limited(GiB), runs_out() as raised:
        torch.empty(2 * GiB, dtype=torch.uint8, device="cuda")
    if is_full():
        assert isinstance(raised.error, torch.OutOfMemoryError)
    else:
        assert str(raised.error).startswith("CUDA out of memory.")


@pytest.mark.parametrize("word", ["reserved", "live", "free", "limit"])
def test_the_error_says_where_the_memory_is(word):
    with limited(GiB), runs_out() as raised:
        torch.empty(2 * GiB, dtype=torch.uint8, device="cuda")
    assert word in str(raised.error).lower()


def test_memory_that_was_live_is_untouched_by_running_out():
    with limited(GiB):
        held = filled(256 * MiB, 7)
        with runs_out():
            torch.empty(2 * GiB, dtype=torch.uint8, device="cuda")
        assert wrong(held, 7).item() == 0


def test_what_was_freed_serves_after_running_out():
    with limited(GiB):
        held = [filled(128 * MiB, 7) for _ in range(6)]
        with runs_out():
            torch.empty(512 * MiB, dtype=torch.uint8, device="cuda")
        del held[::2]
        served = filled(512 * MiB, 3)
    assert wrong(served, 3).item() == 0
    assert all(wrong(tensor, 7).item() == 0 for tensor in held)


def test_a_process_that_ran_out_trains_on_with_a_smaller_batch():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def step(batch):
        optimizer.zero_grad(set_to_none=True)
        loss = model(torch.randn(batch, 1024, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    settle()
    batch, failures, losses = 1 << 20, 0, []
    with limited(GiB):
        while len(losses) < 5:
            try:
                losses.append(step(batch))
            except RuntimeError as error:
                assert is_out_of_memory(error), error
                failures += 1
                batch //= 4
    assert failures >= 1 and batch >= 1
    assert all(map(math.isfinite, losses))


def test_asking_for_far_more_than_the_device_has_takes_nothing_from_it():
    torch.cuda.synchronize()
    before = torch.cuda.mem_get_info()[0]
    with runs_out():
        torch.empty(10 * TiB, dtype=torch.uint8, device="cuda")
    assert torch.cuda.mem_get_info()[0] > before - GiB


def test_asking_for_somewhat_more_than_the_device_has_gives_back_what_it_took():
    torch.cuda.synchronize()
    before, total = torch.cuda.mem_get_info()
    with runs_out():
        torch.empty(total + GiB, dtype=torch.uint8, device="cuda")
    torch.cuda.empty_cache()
    assert torch.cuda.mem_get_info()[0] > before - GiB


@pytest.mark.full
def test_running_out_is_counted():
    before = torch.cuda.memory_stats()["num_ooms"]
    with limited(GiB), runs_out():
        torch.empty(2 * GiB, dtype=torch.uint8, device="cuda")
    assert torch.cuda.memory_stats()["num_ooms"] == before + 1
