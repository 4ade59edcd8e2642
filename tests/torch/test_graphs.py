"""Replays of CUDA graphs find their memory as they left it, whatever the allocator does meanwhile, and leave none."""

import copy
import random

import gmlake
import pytest
import torch
from fresh_process import run_native
from on_device import GiB, MiB, filled, is_out_of_memory, limited, reserved, runs_out, settle, stitched, wrong

MAIN = "0.0"  # the pool's name in gmlake.snapshot()


def private_pools():
    found = gmlake.snapshot()
    return {part["pool"] for kind in ("chunks", "blocks", "stitches") for part in found[kind]} - {MAIN}


def captured(work, *arguments, **how):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, **how):
        output = work(*arguments)
    return graph, output


def through_temporaries(x):
    """3x + 1, with tensors that are freed within the capture."""
    doubled = x * 2
    tripled = doubled + x
    del doubled
    return tripled + 1


@pytest.fixture
def static():
    return torch.zeros(4 * MiB, dtype=torch.int32, device="cuda")


def replays_correctly(graph, output, static, value):
    static.fill_(value)
    graph.replay()
    return wrong(output, 3 * value + 1).item() == 0


def test_a_replay_gives_what_eager_work_gives(static):
    graph, output = captured(through_temporaries, static)
    assert all(replays_correctly(graph, output, static, value) for value in range(5))


def test_replays_are_correct_while_eager_work_allocates_stitches_and_empties_the_cache(static):
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed={seed}")
    choices = random.Random(seed)
    graph, output = captured(through_temporaries, static)
    bystanders = []
    for value in range(30):
        bystanders.append((filled(choices.randrange(1, 64 * MiB), value), value))
        if value % 10 == 3:
            tensor, between = stitched(parts=3, part=32 * MiB)
            tensor.fill_(9)
        if len(bystanders) > 5:
            del bystanders[choices.randrange(len(bystanders))]
        if choices.random() < 0.3:
            torch.cuda.empty_cache()
        assert replays_correctly(graph, output, static, value)
        assert all(wrong(tensor, n).item() == 0 for tensor, n in bystanders)
    assert wrong(tensor, 9).item() == 0


def test_replays_are_correct_under_pressure_that_evicts_and_releases(static):
    graph, output = captured(through_temporaries, static)
    refused = 0
    with limited(GiB):
        for value in range(10):
            held = []
            try:
                while True:
                    held.append(filled((32 + 16 * (len(held) % 3)) * MiB, value))
            except RuntimeError as error:
                assert is_out_of_memory(error), error
                refused += 1
            del held[::2]
            try:
                held.append(filled(256 * MiB, value))
            except RuntimeError as error:
                assert is_out_of_memory(error), error
            del held[1::2]
            assert replays_correctly(graph, output, static, value)
            assert all(wrong(tensor, value).item() == 0 for tensor in held)
    assert refused == 10


def test_a_replay_in_flight_is_not_disturbed_by_emptying_the_cache(static):
    def slow(x):
        torch.cuda._sleep(50_000_000)
        return through_temporaries(x)

    graph, output = captured(slow, static)
    static.fill_(4)
    graph.replay()
    torch.cuda.empty_cache()
    other = filled(256 * MiB, 1)
    assert wrong(output, 13).item() == 0
    assert wrong(other, 1).item() == 0


def test_a_capture_may_span_side_streams(static):
    side = torch.cuda.Stream()

    def forked(x):
        main = torch.cuda.current_stream()
        doubled = x * 2
        side.wait_stream(main)
        with torch.cuda.stream(side):
            tripled = doubled + x
        doubled.record_stream(side)
        del doubled
        beside = torch.full_like(x, 1)
        main.wait_stream(side)
        output = tripled + beside
        tripled.record_stream(main)
        return output

    graph, output = captured(forked, static)
    for value in range(5):
        assert replays_correctly(graph, output, static, value)
        torch.cuda.empty_cache()


def test_two_graphs_may_share_a_pool(static):
    first, tripled = captured(through_temporaries, static)
    second, again = captured(through_temporaries, tripled, pool=first.pool())
    for value in range(5):
        static.fill_(value)
        first.replay()
        second.replay()
        assert wrong(again, 3 * (3 * value + 1) + 1).item() == 0
    del first
    static.fill_(1)
    tripled.fill_(7)
    second.replay()
    assert wrong(again, 22).item() == 0


def test_graphs_of_a_shared_pool_handle_reuse_what_earlier_ones_freed(static):
    pool = torch.cuda.graph_pool_handle()
    graphs = [captured(lambda x: through_temporaries(x).sum(), static, pool=pool) for _ in range(2)]
    settle()
    before = reserved()
    graphs += [captured(lambda x: through_temporaries(x).sum(), static, pool=pool) for _ in range(6)]
    assert reserved() <= before + 4 * MiB
    for value, (graph, output) in enumerate(graphs):
        static.fill_(value)
        graph.replay()
        assert output.item() == (3 * value + 1) * static.numel()


def test_a_capture_whose_pool_is_empty_grows_it(static):
    before = reserved()

    def large(x):
        return [torch.full((100 * MiB,), n, dtype=torch.uint8, device="cuda") + x[0].to(torch.uint8) for n in range(3)]

    graph, outputs = captured(large, static)
    assert reserved() >= before + 300 * MiB
    static.fill_(5)
    graph.replay()
    assert [wrong(output, n + 5).item() for n, output in enumerate(outputs)] == [0, 0, 0]


def test_a_capture_stitches_what_it_freed_for_what_is_larger(static):
    part = 64 * MiB

    def scattering(x):
        row = [torch.empty(part, dtype=torch.uint8, device="cuda") for _ in range(8)]
        for n, tensor in enumerate(row):
            tensor.fill_(n)
        between = row[1::2]
        del row, tensor
        whole = torch.empty(4 * part, dtype=torch.uint8, device="cuda")
        whole.copy_(x[:1].to(torch.uint8).expand(4 * part))
        return whole, between

    graph, (whole, between) = captured(scattering, static)
    assert any(stitch["pool"] != MAIN for stitch in gmlake.snapshot()["stitches"])
    for value in (1, 2, 3):
        static.fill_(value)
        graph.replay()
        torch.cuda.empty_cache()
        assert wrong(whole, value).item() == 0
        assert [wrong(tensor, 2 * n + 1).item() for n, tensor in enumerate(between)] == [0] * 4


def test_an_exception_within_a_capture_leaves_a_usable_allocator(static):
    def failing(x):
        through_temporaries(x)
        raise KeyError

    with pytest.raises(KeyError):
        captured(failing, static)
    settle()
    graph, output = captured(through_temporaries, static)
    assert replays_correctly(graph, output, static, 3)


def test_running_out_of_memory_within_a_capture_leaves_a_usable_allocator(static):
    def failing(x):
        tensor = through_temporaries(x)
        return tensor, torch.empty(GiB, dtype=torch.uint8, device="cuda")

    with limited(256 * MiB), runs_out():
        captured(failing, static)
    settle()
    graph, output = captured(through_temporaries, static)
    assert replays_correctly(graph, output, static, 3)


def test_deleting_a_graph_gives_its_memory_back(static):
    captured(through_temporaries, static)  # what the first capture leaves for good is not looked at
    settle()
    before = reserved()
    graph, output = captured(through_temporaries, static)
    graph.replay()
    torch.cuda.synchronize()
    assert reserved() > before
    assert private_pools()
    del graph, output
    settle()
    assert reserved() == before
    assert not private_pools()


def test_an_output_outlives_its_graph(static):
    graph, output = captured(through_temporaries, static)
    assert replays_correctly(graph, output, static, 2)
    del graph
    settle()
    others = [filled(16 * MiB, 1) for _ in range(16)]
    assert wrong(output, 7).item() == 0
    assert all(wrong(tensor, 1).item() == 0 for tensor in others)


def test_capturing_again_and_again_does_not_grow():
    held = []
    for _ in range(10):
        static = torch.zeros(4 * MiB, dtype=torch.int32, device="cuda")
        graph, output = captured(through_temporaries, static)
        assert replays_correctly(graph, output, static, 1)
        del graph, output, static
        settle()
        held.append(reserved())
    assert held[-1] <= held[0]


def test_a_graphed_module_trains_as_an_eager_one():
    torch.manual_seed(0)
    eager = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 16)).cuda()
    graphed = torch.cuda.make_graphed_callables(copy.deepcopy(eager), (torch.randn(64, 256, device="cuda"),))

    def train(model):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        numbers, losses = torch.Generator().manual_seed(1), []
        for n in range(10):
            x = torch.randn(64, 256, generator=numbers).cuda()
            loss = model(x).square().mean()
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            filled((n + 1) * 8 * MiB, 1)  # memory that comes and goes beside the graphs
        return losses

    torch.testing.assert_close(torch.tensor(train(graphed)), torch.tensor(train(eager)), rtol=1e-4, atol=1e-6)


@pytest.mark.full
@pytest.mark.slow
def test_compiled_reduce_overhead_trains_as_eager_does():
    from torch._dynamo.utils import counters
    from torch._inductor import config, cudagraph_trees

    torch._dynamo.reset()
    counters.clear()
    torch.manual_seed(0)
    eager = torch.nn.Sequential(torch.nn.Linear(128, 256), torch.nn.GELU(), torch.nn.Linear(256, 8)).cuda()
    copied = copy.deepcopy(eager)

    def branching(model):
        return lambda x, twice: model(x) * 2 if twice else model(x)

    def train(model, forward, mark):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        numbers, losses = torch.Generator().manual_seed(1), []
        for n in range(18):
            mark()
            x = torch.randn((32, 48, 64)[n % 3], 128, generator=numbers).cuda()
            loss = forward(x, n % 2 == 0).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            losses.append(loss.item())
            del loss
            torch.cuda.empty_cache()
        return torch.tensor(losses)

    with config.patch(compile_threads=1):
        compiled = torch.compile(branching(copied), mode="reduce-overhead", dynamic=False)
        found = train(copied, compiled, torch.compiler.cudagraph_mark_step_begin)
    expected = train(eager, branching(eager), lambda: None)
    assert counters["inductor"]["cudagraph_skips"] == 0
    trees = cudagraph_trees.get_manager(torch.cuda.current_device(), create_if_none_exists=False)
    assert trees is not None and any(trees.roots.values()), "no graph was captured"
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)

    del trees, compiled, copied
    torch._dynamo.reset()
    cudagraph_trees.reset_cudagraph_trees()
    settle()
    assert not private_pools()


@pytest.mark.full
def test_a_memory_pool_holds_what_is_allocated_in_it_and_gives_it_back():
    settle()
    before = reserved()
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        inside = filled(64 * MiB, 3)
        gone = filled(64 * MiB, 4)
        del gone
    outside = filled(64 * MiB, 5)
    segments = pool.snapshot()
    assert sum(segment["total_size"] for segment in segments) >= 128 * MiB
    assert any(
        block["state"] == "active_allocated" and block["size"] >= 64 * MiB
        for segment in segments
        for block in segment["blocks"]
    )
    assert private_pools()
    assert wrong(inside, 3).item() == 0 and wrong(outside, 5).item() == 0
    del inside, outside, pool, segments
    settle()
    assert reserved() == before
    assert not private_pools()


@pytest.mark.full
def test_a_memory_pool_serves_again_what_was_freed_in_it():
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        held = [filled(64 * MiB, n) for n in range(2)]
    del held
    before = reserved()
    with torch.cuda.use_mem_pool(pool):
        held = [filled(64 * MiB, n) for n in range(2)]
    assert reserved() == before
    assert [wrong(tensor, n).item() for n, tensor in enumerate(held)] == [0, 0]


@pytest.mark.full
def test_a_tensor_outlives_its_memory_pool():
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        kept = filled(64 * MiB, 3)
    del pool
    settle()
    others = [filled(32 * MiB, 1) for _ in range(8)]
    assert wrong(kept, 3).item() == 0
    assert all(wrong(tensor, 1).item() == 0 for tensor in others)


FOREIGN_POOL = """
import gmlake
import torch
from on_device import MiB, figure, filled, wrong

gmlake.enable(level="full")
torch.zeros(1, device="cuda")
before, before_driver = figure("reserved"), torch.cuda.mem_get_info()[0]
allocator = gmlake.allocator()  # gmlake's other library: to this one, a stranger's
pool = torch.cuda.MemPool(allocator.allocator())
with torch.cuda.use_mem_pool(pool):
    inside = [filled(n, 7) for n in (100, 3 * MiB, 40 * MiB, 1 * MiB)]
    reserved = figure("reserved") - before
    segments = [s["total_size"] for s in pool.snapshot()]
    torch.cuda.synchronize()
    place = inside[2].data_ptr()
    del inside[2]
    inside.append(filled(39 * MiB, 8))  # in the place of what was freed
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph, pool=pool.id):
    captured = filled(1 * MiB, 3)
captured.zero_()
graph.replay()
bad = [wrong(t, v).item() for t, v in zip(inside + [captured], (7, 7, 7, 8, 3))]
same = inside[-1].data_ptr() == place
try:
    with torch.cuda.use_mem_pool(pool):
        torch.empty(1 << 40, dtype=torch.uint8, device="cuda")
    refused = "no"
except torch.OutOfMemoryError as error:
    refused = str(error)
torch.cuda.synchronize()
del graph, captured, pool
kept = figure("reserved") - before
torch.cuda.synchronize()
del inside
torch.cuda.empty_cache()
hand_back({"reserved": reserved, "segments": sorted(segments), "bad": bad, "same": same, "refused": refused,
           "kept": kept, "left": figure("reserved") - before})
"""


@pytest.mark.full
def test_a_memory_pool_may_have_an_allocator_of_its_own():
    found = run_native(FOREIGN_POOL).value
    assert found["segments"] == [2 * MiB, 4 * MiB, 40 * MiB]  # the last tensor lies beside the second
    assert found["reserved"] == sum(found["segments"])
    assert found["bad"] == [0] * 5
    assert found["same"]
    assert "Tried to allocate 1024.00 GiB" in found["refused"]
    assert found["kept"] >= found["reserved"]  # tensors outlive their pool
    assert found["left"] <= 0  # what was there before has gone too


GMLAKE_POOL = """
import gmlake
import torch
from on_device import MiB, figure, filled, wrong

assert gmlake.enabled() is None
allocator = gmlake.allocator()
pool = torch.cuda.MemPool(allocator.allocator())
with torch.cuda.use_mem_pool(pool):
    inside = [filled(64 * MiB, n) for n in range(4)]
held = figure("live")
outside = filled(64 * MiB, 9)
bad = [wrong(tensor, n).item() for n, tensor in enumerate(inside)] + [wrong(outside, 9).item()]
after_outside = figure("live")
torch.cuda.synchronize()
del inside
with torch.cuda.use_mem_pool(pool):
    again = [filled(64 * MiB, n) for n in range(4)]
bad += [wrong(tensor, n).item() for n, tensor in enumerate(again)]
torch.cuda.synchronize()
del again, pool
torch.cuda.empty_cache()
hand_back({"held": held, "after outside": after_outside, "bad": bad, "left": figure("live")})
"""


def test_native_pytorch_can_use_gmlake_for_one_memory_pool():
    found = run_native(GMLAKE_POOL).value
    assert found["held"] >= 256 * MiB
    assert found["after outside"] == found["held"]
    assert found["bad"] == [0] * 9
    assert found["left"] == 0
