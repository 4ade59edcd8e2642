"""Tensors leave for host memory and come back at the same addresses, by hand, in groups, and by a pager."""

import gc

import gmlake
import pytest
import torch
from fresh_process import run_gmlake
from on_device import GiB, MiB, figure, filled, is_full, settle, wrong


@pytest.fixture(autouse=True)
def settled():
    settle()
    yield
    settle()


def free():
    torch.cuda.synchronize()
    return torch.cuda.mem_get_info()[0]


def swappable(nbytes, byte, tag=None):
    with gmlake.swappable(tag):
        return filled(nbytes, byte)


def test_a_tensor_leaves_and_comes_back_at_its_address():
    tensor = swappable(64 * MiB, 7)
    at, before = tensor.data_ptr(), figure("swap_departures")
    gmlake.swap_out(tensor)
    gmlake.swap_in(tensor)
    torch.cuda.synchronize()
    gmlake.swap_out(tensor)
    gmlake.resume()
    assert tensor.data_ptr() == at
    assert wrong(tensor, 7).item() == 0
    assert figure("swap_departures") + figure("swap_called_back") >= before + 2


def test_what_was_queued_before_is_in_the_copy_and_what_is_queued_after_finds_it():
    tensor = swappable(256 * MiB, 1)
    for i in range(2, 30):
        tensor.fill_(i)
        gmlake.swap_out(tensor)
        gmlake.swap_in(tensor)
        assert wrong(tensor, i).item() == 0
    assert wrong(tensor, 29).item() == 0


def test_it_leaves_behind_the_work_of_other_streams_that_were_recorded():
    side = torch.cuda.Stream()
    tensor = swappable(64 * MiB, 1)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.cuda._sleep(200_000_000)
        tensor.fill_(5)
        tensor.record_stream(side)
    gmlake.swap_out(tensor)
    torch.cuda.synchronize()  # a copy that was begun too early is over by now
    gmlake.swap_in(tensor)
    assert wrong(tensor, 5).item() == 0


def test_a_paused_groups_memory_is_the_devices():
    tensors = [swappable(256 * MiB, i, "a") for i in range(8)]
    other = swappable(64 * MiB, 99, "b")
    addresses, before = [t.data_ptr() for t in tensors], free()
    assert gmlake.pause("a") == 2 * GiB
    assert free() - before >= 2 * GiB - 64 * MiB
    assert wrong(other, 99).item() == 0
    assert gmlake.resume("a") == 2 * GiB
    assert [t.data_ptr() for t in tensors] == addresses
    assert all(wrong(t, i).item() == 0 for i, t in enumerate(tensors))


def test_contents_may_be_discarded():
    tensor = swappable(512 * MiB, 3, "kv")
    before, copied = free(), figure("swap_copied_out")
    gmlake.pause("kv", keep=False)
    assert free() - before >= 512 * MiB - 64 * MiB
    gmlake.resume("kv")
    tensor.fill_(4)
    assert wrong(tensor, 4).item() == 0
    assert figure("swap_copied_out") == copied


def test_a_model_sleeps_and_wakes():
    with gmlake.swappable("model"):
        model = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(8)]).cuda()
    x = torch.randn(16, 2048, device="cuda")
    expected = model(x).clone()
    before = free()
    gmlake.pause("model")
    assert free() - before >= 100 * MiB
    gmlake.resume("model")
    assert torch.equal(model(x), expected)


def test_absent_tensors_may_be_freed():
    live = figure("live")
    for _ in range(3):
        tensors = [swappable(32 * MiB, i) for i in range(6)]
        for tensor in tensors[::2]:
            gmlake.swap_out(tensor)
        del tensor, tensors
        gc.collect()
    torch.cuda.synchronize()
    assert figure("live") == live


def test_what_is_not_swappable_is_an_error_and_stays():
    tensor = filled(64 * MiB, 1)
    with pytest.raises(gmlake.Error):
        gmlake.swap_out(tensor)
    assert wrong(tensor, 1).item() == 0


def test_what_is_too_small_to_leave_is_an_error_by_itself():
    small = swappable(1 * MiB, 1)
    with pytest.raises(gmlake.Error, match="less than 4.00 MiB"):
        gmlake.swap_out(small)
    with pytest.raises(gmlake.Error, match="not in the memory of a GPU"):
        gmlake.swap_out(torch.zeros(8))


def test_of_a_module_and_its_optimizers_state_all_that_is_large_leaves():
    with gmlake.swappable():
        model = torch.nn.Linear(2048, 2048).cuda()
        optimizer = torch.optim.AdamW(model.parameters())
        model(torch.ones(4, 2048, device="cuda")).sum().backward()
        optimizer.step()
    before = figure("swap_departures")
    gmlake.swap_out(model, optimizer.state_dict())
    torch.cuda.synchronize()
    gmlake.prefetch(model)
    gmlake.swap_in(model, optimizer.state_dict())
    moments = optimizer.state[model.weight]
    expected = torch.full_like(model.weight, 0.4)  # a tenth of the gradient
    assert torch.allclose(moments["exp_avg"], expected)
    gmlake.pause()
    gmlake.resume()
    assert torch.allclose(moments["exp_avg"], expected)
    assert figure("swap_departures") >= before + 3  # the weights and their two moments


def test_a_large_tensor_among_others_that_cant_leave_is_an_error_and_all_stay():
    first, plain = swappable(64 * MiB, 1), filled(64 * MiB, 2)
    with pytest.raises(gmlake.Error, match="swappable"):
        gmlake.swap_out([first, plain])
    assert wrong(first, 1).item() == wrong(plain, 2).item() == 0


def test_what_is_pinned_stays_until_it_is_unpinned():
    tensor = swappable(64 * MiB, 6, "pinned")
    gmlake.pin(tensor)
    with pytest.raises(gmlake.Error, match="paused"):
        gmlake.pause("pinned")
    assert wrong(tensor, 6).item() == 0
    gmlake.unpin(tensor)
    with pytest.raises(gmlake.Error):
        gmlake.unpin(tensor)
    assert gmlake.pause("pinned") == 64 * MiB
    gmlake.resume("pinned")
    assert wrong(tensor, 6).item() == 0


def test_what_nobody_writes_is_copied_to_the_host_once():
    tensor = swappable(64 * MiB, 7, "weights")
    gmlake.read_only(tensor)
    copied = [figure("swap_copied_out")]
    for again in range(3):
        if again == 2:
            gmlake.read_only(tensor, value=False)
            tensor.fill_(8)
        gmlake.pause("weights")
        gmlake.resume("weights")
        copied.append(figure("swap_copied_out"))
    assert [b - a for a, b in zip(copied, copied[1:])] == [64 * MiB, 0, 64 * MiB]
    assert wrong(tensor, 8).item() == 0


def test_a_tag_that_nobody_knows_is_an_error():
    with pytest.raises(gmlake.Error, match="nothing was made swappable"):
        gmlake.pause("nobody's")


def test_prefetching_brings_back_what_is_swapped_in_then():
    tensor = swappable(64 * MiB, 9)
    gmlake.pause()
    before = figure("swap_copied_in"), figure("swap_arrivals")
    gmlake.prefetch(tensor)
    copied = figure("swap_copied_in")
    gmlake.swap_in(tensor)
    assert wrong(tensor, 9).item() == 0
    gmlake.resume()  # waits until it is told that it has arrived
    assert copied == figure("swap_copied_in") == before[0] + 64 * MiB
    assert figure("swap_arrivals") == before[1] + 1


def test_host_memory_pinned_ahead_serves_what_leaves():
    gmlake.pin_host("512MiB")
    tensor = swappable(512 * MiB, 5, "pinned")
    gmlake.pause("pinned")
    gmlake.resume("pinned")
    assert wrong(tensor, 5).item() == 0
    with pytest.raises(gmlake.Error):
        gmlake.pin_host("900TiB")


def test_what_has_left_is_in_the_file_where_pinned_memory_ends(tmp_path):
    script = """
    import torch
    with gmlake.swappable("many"):
        tensors = [torch.full((64 << 20,), i, dtype=torch.uint8, device="cuda") for i in range(8)]
    assert gmlake.pause("many") == 512 << 20
    away = gmlake.stats(0)["swap_absent"]
    assert gmlake.resume("many") == 512 << 20
    hand_back([away, [bool((t == i).all()) for i, t in enumerate(tensors)]])
    """
    away, right = run_gmlake(script, host="128MiB", swap_file=f"{tmp_path}:1GiB").value
    assert away == 512 * MiB
    assert right == [True] * 8
    with pytest.raises(AssertionError, match="paused"):  # 64 MiB of it have no place
        run_gmlake(script, host="128MiB", swap_file=f"{tmp_path}:320MiB")


def test_a_kernel_may_touch_what_is_served_from_the_host():
    script = """
    import torch
    with gmlake.swappable():
        tensor = torch.full((64 << 20,), 3, dtype=torch.uint8, device="cuda")
    torch.cuda.synchronize()
    before = torch.cuda.mem_get_info()[0]
    gmlake.pause()
    freed = torch.cuda.mem_get_info()[0] - before
    right = [bool((tensor == 3).all())]
    tensor.add_(1)  # at its copy
    gmlake.swap_in(tensor)
    right.append(bool((tensor == 4).all()))
    hand_back([freed, right])
    """
    freed, right = run_gmlake(script, in_place=True).value
    assert freed >= 62 * MiB
    assert right == [True, True]


FROZEN = """
import torch

with gmlake.swappable("frozen"):
    weights = [torch.full((64 << 20,), float(i), device="cuda") for i in range(8)]  # of 256 MiB
torch.cuda.synchronize()
with gmlake.swap("1280MiB", frozen=weights):
    for _ in range(6):
        with gmlake.step():
            total = torch.zeros((), device="cuda", dtype=torch.float64)
            for w in weights:
                total += w.max()
            assert total.item() == 28
    figures = gmlake.stats(0)
hand_back([figures["swap_departures"], figures["swap_copied_out"]])
"""


@pytest.mark.skipif(gmlake.enabled() is None, reason="gmlake is off")
def test_frozen_tensors_are_copied_to_the_host_once():
    departures, copied = run_gmlake(FROZEN).value
    assert departures >= 8
    assert copied <= 2 * GiB


PAUSED_WITHIN = """
import torch

with gmlake.swappable("cache"):
    cache = torch.full((512 << 20,), 7, dtype=torch.uint8, device="cuda")
torch.cuda.synchronize()
seen = []
with gmlake.swap("1536MiB"):
    gmlake.pause("cache")
    seen.append(gmlake.stats(0)["swap_absent"])
    for _ in range(4):
        with gmlake.step():
            held = [torch.ones(64 << 20, device="cuda") for _ in range(8)]
            seen.append(sum(float(h.sum()) for h in held) == 8 * (64 << 20))
            del held
away = gmlake.stats(0)["swap_absent"]
gmlake.resume("cache")
hand_back([seen, away, bool((cache == 7).all())])
"""


@pytest.mark.skipif(gmlake.enabled() is None, reason="gmlake is off")
def test_what_is_paused_within_a_limit_stays_so_until_it_is_resumed():
    seen, away, right = run_gmlake(PAUSED_WITHIN).value
    assert seen[0] >= 512 * MiB
    assert seen[1:] == [True] * 4
    assert away >= 512 * MiB
    assert right


TRAIN = """
import contextlib, time, torch
from torch import nn
torch.use_deterministic_algorithms(True)
torch.backends.cuda.matmul.allow_tf32 = False

def train(steps, within=None, lengths=(512,), rest=0):
    torch.manual_seed(0)
    width = 1024
    layers = [nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)) for _ in range(12)]
    model = nn.Sequential(*layers).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    losses = []
    with within or contextlib.nullcontext():
        for i in range(steps):
            x = torch.randn(32, lengths[i % len(lengths)], width, device="cuda")
            loss = (model(x) - x).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            losses.append(loss.item())
            del x, loss
            time.sleep(rest)
    weights = sum(p.detach().double().sum().item() for p in model.parameters())
    peak = torch.cuda.max_memory_reserved() if gmlake.enabled() == "full" else gmlake.stats(0)["reserved_peak"]
    return {"losses": losses, "weights": weights, "peak": peak}
"""
FREELY = "hand_back(train(16, None, %s))"
PAGED = """
limit = int(%s)
result = train(16, gmlake.swap(limit), %s, rest=0.5)  # schedules are made meanwhile
result["figures"] = gmlake.stats(0)
hand_back(result)
"""


@pytest.mark.parametrize("lengths", ["(512,)", "(512, 384)", "(512, 200, 450, 333)"])
@pytest.mark.skipif(gmlake.enabled() is None, reason="gmlake is off")
def test_training_within_a_limit_computes_the_same_bits(lengths):
    env = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
    free_run = run_gmlake(TRAIN + FREELY % lengths, env=env).value
    limit = int(0.65 * free_run["peak"])
    paged = run_gmlake(TRAIN + PAGED % (limit, lengths), env=env).value
    assert paged["losses"] == free_run["losses"]
    assert paged["weights"] == free_run["weights"]
    figures = paged["figures"]
    assert figures["swap_departures"] > 0
    if lengths == "(512,)":
        assert figures["page_steps_by_schedule"] >= 3
        assert figures["page_planned_in"] > 0


WAITING = """
import torch

with gmlake.swap("1536MiB"):
    for _ in range(30):
        with gmlake.step():
            held = [torch.zeros(64 << 20, device="cuda")]
            for _ in range(12):
                held.append(held[-1] + 1)
            total = torch.zeros((), device="cuda")
            while held:
                total += held.pop()[0]
            assert total.item() == 78
    figures = gmlake.stats(0)
hand_back({k: figures["page_expected_" + k + "_ns"] for k in ("step", "stall")})
"""


@pytest.mark.skipif(not is_full(), reason="at the level plain, an operator's time counts what its memory is waited for")
def test_what_an_operators_results_wait_for_is_not_taken_for_its_work():
    expected = run_gmlake(WAITING).value
    assert expected["step"] > 0
    assert expected["step"] - expected["stall"] < 0.25 * expected["step"]


JOBS = """
import threading

def together(limit, guest):
    results, failed = {}, []
    def go(name, steps, seed):
        try:
            with gmlake.job() if limit else torch.cuda.stream(torch.cuda.Stream()):
                results[name] = job_losses(steps, seed)
        except BaseException as error:
            failed.append(f"{name}: {error!r}")
    with gmlake.swap(limit) if limit else contextlib.nullcontext():
        jobs = [threading.Thread(target=go, args=(f"job {i}", 12, i)) for i in range(3)]
        for job in jobs:
            job.start()
        if guest:
            time.sleep(1)
            visitor = threading.Thread(target=go, args=("guest", 4, 9))
            visitor.start()
            visitor.join()
        for job in jobs:
            job.join()
    assert not failed, failed
    return results, torch.cuda.max_memory_reserved() if gmlake.enabled() == "full" else gmlake.stats(0)["reserved_peak"]

def job_losses(steps, seed):
    generator = torch.Generator("cuda").manual_seed(seed)
    width = 1024
    weights = [torch.randn(width, width, device="cuda", generator=generator).mul_(0.03).requires_grad_() for _ in range(10)]
    optimizer = torch.optim.AdamW(weights, lr=1e-4)
    losses = []
    for i in range(steps):
        x = torch.randn(16 * 1024, width, device="cuda", generator=generator)
        h = x
        for w in weights:
            h = torch.tanh(h @ w)
        loss = (h - x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
        del x, h, loss
    return losses
"""


@pytest.mark.skipif(gmlake.enabled() is None, reason="gmlake is off")
def test_jobs_that_share_a_limit_come_and_go_and_compute_the_same_bits():
    env = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
    free_run, peak = run_gmlake(TRAIN + JOBS + "hand_back(together(0, True))", env=env).value
    limit = int(0.6 * peak)
    shared, most = run_gmlake(TRAIN + JOBS + f"hand_back(together({limit}, True))", env=env).value
    assert shared == free_run
    assert most <= limit


def test_a_limit_below_one_operators_needs_is_out_of_memory():
    script = (
        TRAIN
        + """
try:
    train(2, gmlake.swap("600MiB"))
    hand_back("ran")
except RuntimeError as error:
    hand_back(str(error))
"""
    )
    assert "memory" in run_gmlake(script).value
