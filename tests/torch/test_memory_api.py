"""torch.cuda.memory's functions tell of gmlake what they tell of PyTorch's own allocator."""

import contextlib
import json
import pickle

import pytest
import torch
from on_device import GiB, KiB, MiB, filled, limited, runs_out, settle, stitched, wrong
from torch.cuda import _memory_viz

pytestmark = pytest.mark.full

GAUGES = ["allocation", "segment", "active", "inactive_split"] + [
    f"{name}_bytes" for name in ("allocated", "reserved", "active", "inactive_split", "requested")
]
COUNTS = ["num_alloc_retries", "num_ooms", "num_sync_all_streams", "num_device_alloc", "num_device_free"]
METRICS = ["current", "peak", "allocated", "freed"]
# What PyTorch counts at each change. Memory that can't be given back is worked out when asked for.
KEPT = [gauge for gauge in GAUGES if not gauge.startswith("inactive_split")]


def test_the_backend_names_itself():
    assert "gmlake" in torch.cuda.memory.get_allocator_backend().lower()


def test_all_statistics_are_there():
    filled(MiB, 1)
    pools = ["all", "large_pool", "small_pool"]
    expected = {f"{gauge}.{pool}.{m}" for gauge in GAUGES for pool in pools for m in METRICS}
    expected |= {f"oversize_{kind}.{m}" for kind in ("allocations", "segments") for m in METRICS}
    stats = torch.cuda.memory_stats()
    assert expected | {*COUNTS, "max_split_size"} <= set(stats)
    assert {name for name in expected if stats[name] < 0} == set()


def test_the_small_and_the_large_pool_add_up():
    held = [filled(1000, 1), filled(4 * MiB, 1)]
    del held[0]
    stats = torch.cuda.memory_stats()
    for gauge in KEPT:
        for metric in ("current", "allocated", "freed"):
            parts = stats[f"{gauge}.large_pool.{metric}"] + stats[f"{gauge}.small_pool.{metric}"]
            assert stats[f"{gauge}.all.{metric}"] == parts, (gauge, metric)


@pytest.mark.parametrize("size, pool", [(1000, "small_pool"), (4 * MiB, "large_pool")])
def test_an_allocation_and_its_free_are_counted(size, pool):
    def differences(before):
        after = torch.cuda.memory_stats()
        return {name: after[name] - before[name] for name in after}

    before = torch.cuda.memory_stats()
    tensor = torch.empty(size, dtype=torch.uint8, device="cuda")
    made = differences(before)
    rounded = made[f"allocated_bytes.{pool}.current"]
    assert size <= rounded < size + 2 * MiB and rounded % 512 == 0
    assert made[f"requested_bytes.{pool}.current"] == size
    assert made[f"active_bytes.{pool}.current"] == rounded
    assert made[f"allocation.{pool}.current"] == made[f"allocation.{pool}.allocated"] == 1
    assert made[f"allocation.{pool}.freed"] == 0
    assert made[f"active.{pool}.current"] == 1

    del tensor
    gone = differences(before)
    for gauge in ("allocated_bytes", "requested_bytes", "allocation"):
        assert gone[f"{gauge}.{pool}.current"] == 0
        assert gone[f"{gauge}.{pool}.allocated"] == gone[f"{gauge}.{pool}.freed"] > 0
    assert gone[f"allocated_bytes.{pool}.freed"] == rounded


def test_every_gauge_is_what_was_allocated_less_what_was_freed_since_the_beginning():
    torch.cuda.reset_accumulated_memory_stats()
    before = torch.cuda.memory_stats()
    held = [filled(n * MiB, 1) for n in range(1, 9)]
    del held[::2]
    settle()
    after = torch.cuda.memory_stats()
    for gauge in KEPT:
        change = after[f"{gauge}.all.current"] - before[f"{gauge}.all.current"]
        moved = after[f"{gauge}.all.allocated"] - after[f"{gauge}.all.freed"]
        assert change == moved, gauge


def test_gauges_stand_in_order():
    held = [filled(n * 777 * KiB, 1) for n in range(1, 20)]
    del held[::3]
    stats = torch.cuda.memory_stats()
    now = {gauge: stats[f"{gauge}.all.current"] for gauge in GAUGES}
    assert now["requested_bytes"] <= now["allocated_bytes"] <= now["active_bytes"] <= now["reserved_bytes"]
    assert now["inactive_split_bytes"] <= now["reserved_bytes"] - now["active_bytes"]
    assert 0 < now["segment"] and 0 < now["allocation"] <= now["active"]
    for gauge in GAUGES:
        assert stats[f"{gauge}.all.current"] <= stats[f"{gauge}.all.peak"], gauge


def test_peaks_are_kept_until_reset():
    torch.cuda.reset_peak_memory_stats()
    base = torch.cuda.memory_allocated()
    tensor = torch.empty(100 * MiB, dtype=torch.uint8, device="cuda")
    assert torch.cuda.memory_allocated() == base + 100 * MiB
    del tensor
    assert torch.cuda.memory_allocated() == base
    assert torch.cuda.max_memory_allocated() == base + 100 * MiB
    assert torch.cuda.max_memory_reserved() >= base + 100 * MiB
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.max_memory_allocated() == base
    assert torch.cuda.max_memory_reserved() == torch.cuda.memory_reserved()


def test_accumulated_statistics_can_be_reset():
    tensor = filled(4 * MiB, 1)
    with limited(64 * MiB), runs_out():
        torch.empty(GiB, dtype=torch.uint8, device="cuda")
    before = torch.cuda.memory_stats()
    assert before["num_ooms"] > 0
    torch.cuda.reset_accumulated_memory_stats()
    after = torch.cuda.memory_stats()
    for gauge in GAUGES:
        assert after[f"{gauge}.all.allocated"] == after[f"{gauge}.all.freed"] == 0, gauge
        assert after[f"{gauge}.all.current"] == before[f"{gauge}.all.current"], gauge
    assert after["num_ooms"] == after["num_alloc_retries"] == 0
    assert wrong(tensor, 1).item() == 0


def test_a_recorded_tensor_is_no_longer_allocated_once_freed_nor_active_once_its_streams_are_done():
    side = torch.cuda.Stream()
    tensor = filled(64 * MiB, 1)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.cuda._sleep(100_000_000)
        tensor.add_(1)
    tensor.record_stream(side)
    base = torch.cuda.memory_allocated()
    del tensor
    assert torch.cuda.memory_allocated() == base - 64 * MiB
    settle()
    stats = torch.cuda.memory_stats()
    assert stats["active_bytes.all.current"] == stats["allocated_bytes.all.current"]


@pytest.mark.parametrize("abbreviated", [False, True])
def test_the_summary_renders(abbreviated):
    tensor = filled(MiB, 1)
    text = torch.cuda.memory_summary(abbreviated=abbreviated)
    for row in ("Allocated memory", "GPU reserved memory", "Non-releasable memory", "Oversize allocations"):
        assert row in text
    assert ("from large pool" in text) != abbreviated
    assert wrong(tensor, 1).item() == 0


def test_the_accelerators_functions_say_the_same():
    tensor = filled(32 * MiB, 1)
    memory = torch.accelerator.memory
    assert memory.memory_allocated() == torch.cuda.memory_allocated() >= tensor.numel()
    assert memory.memory_reserved() == torch.cuda.memory_reserved()
    assert memory.max_memory_allocated() == torch.cuda.max_memory_allocated()
    del tensor
    before = memory.memory_reserved()
    memory.empty_cache()
    assert memory.memory_reserved() < before


def accounted(snapshot):
    """The checks that hold for every snapshot; its bytes reserved and in blocks that are allocated."""
    total = held = 0
    for segment in snapshot["segments"]:
        blocks = segment["blocks"]
        assert sum(block["size"] for block in blocks) == segment["total_size"]
        active = sum(block["size"] for block in blocks if block["state"] == "active_allocated")
        assert active == segment["allocated_size"] <= segment["active_size"] <= segment["total_size"]
        assert {block["state"] for block in blocks} <= {"active_allocated", "active_pending_free", "inactive"}
        assert segment["segment_type"] in ("small", "large")
        total += segment["total_size"]
        held += active
    return total, held


def test_a_snapshots_segments_are_what_is_reserved():
    held = [filled(n * MiB, 1) for n in (1, 5, 40, 3)]
    del held[1]
    total, live = accounted({"segments": torch.cuda.memory_snapshot()})
    assert total == torch.cuda.memory_reserved()
    assert live == torch.cuda.memory_allocated()


def test_a_snapshot_counts_stitched_memory_once():
    tensor, between = stitched()
    total, live = accounted({"segments": torch.cuda.memory_snapshot()})
    assert total == torch.cuda.memory_reserved()
    assert live == torch.cuda.memory_allocated()
    free, device = torch.cuda.mem_get_info()
    assert total <= device - free
    assert len(between) == 4 and tensor.numel() == 4 * between[0].numel()


def test_a_snapshot_shows_memory_that_awaits_its_streams_or_has_it_back():
    side = torch.cuda.Stream()
    tensor = filled(64 * MiB, 1)
    with torch.cuda.stream(side):
        torch.cuda._sleep(100_000_000)
    tensor.record_stream(side)
    del tensor
    total, live = accounted({"segments": torch.cuda.memory_snapshot()})
    assert total == torch.cuda.memory_reserved()
    assert live == torch.cuda.memory_allocated()


@contextlib.contextmanager
def history(**how):
    torch.cuda.memory._record_memory_history(enabled="all", stacks="python", clear_history=True, **how)
    try:
        yield
    finally:
        torch.cuda.memory._record_memory_history(enabled=None)


def recorded():
    return torch.cuda.memory._snapshot()["device_traces"][torch.cuda.current_device()]


def test_the_history_has_every_allocation_and_free_with_frames():
    with history(context="all"):
        tensor = torch.empty(12_345_678, dtype=torch.uint8, device="cuda")
        at = tensor.data_ptr()
        del tensor
        entries = [entry for entry in recorded() if entry.get("addr") == at]
    actions = [entry["action"] for entry in entries if not entry["action"].startswith("segment")]
    assert actions == ["alloc", "free_requested", "free_completed"]
    (made,) = [entry for entry in entries if entry["action"] == "alloc"]
    assert made["size"] == 12_345_678
    assert made["stream"] == torch.cuda.current_stream().cuda_stream
    name = "test_the_history_has_every_allocation_and_free_with_frames"
    assert any(frame["name"] == name and frame["filename"].endswith("test_memory_api.py") for frame in made["frames"])
    times = [entry["time_us"] for entry in entries]
    assert times == sorted(times)


def test_the_history_has_segments_come_and_go():
    with history(context=None):
        tensor = torch.empty(512 * MiB, dtype=torch.uint8, device="cuda")
        del tensor
        settle()
        entries = recorded()
    for actions in ({"segment_alloc", "segment_map"}, {"segment_free", "segment_unmap"}):
        assert sum(entry["size"] for entry in entries if entry["action"] in actions) >= 512 * MiB, actions


def test_memory_knows_who_had_it_mapped_and_unmapped():
    settle()
    with history(context="all"):
        tensor = torch.empty(768 * MiB, dtype=torch.uint8, device="cuda")
        (segment,) = [s for s in torch.cuda.memory_snapshot() if s["address"] == tensor.data_ptr()]
        del tensor
        settle()
        unmapped = [entry for entry in recorded() if entry["action"] == "segment_unmap"]
    assert any(frame["name"] == "empty_cache" for frame in unmapped[-1]["frames"])
    name = "test_memory_knows_who_had_it_mapped_and_unmapped"
    assert any(frame["name"] == name for frame in segment["frames"])


def test_a_snapshot_does_not_tell_of_itself():
    with history(context=None):
        tensor = torch.empty(12_345, dtype=torch.uint8, device="cuda")
        first, second = recorded(), recorded()
    assert first[-1]["action"] == "alloc" and first[-1]["size"] == tensor.numel()
    assert second[-1]["action"] == "snapshot"


def test_what_is_free_was_requested_by_nobody():
    tensor = torch.empty(7_654_320, dtype=torch.uint8, device="cuda")
    del tensor
    for segment in torch.cuda.memory_snapshot():
        for block in segment["blocks"]:
            assert block["state"] != "inactive" or block["requested_size"] == 0


def test_the_history_has_running_out():
    with history(context=None), limited(64 * MiB):
        with runs_out():
            torch.empty(GiB, dtype=torch.uint8, device="cuda")
        (entry,) = [entry for entry in recorded() if entry["action"] == "oom"]
    assert entry["size"] == GiB
    assert 0 <= entry["device_free"] <= torch.cuda.mem_get_info()[1]


def test_the_history_keeps_the_latest_entries_only_if_asked():
    with history(context=None, max_entries=10):
        tensors = [torch.empty(1000 + n, dtype=torch.uint8, device="cuda") for n in range(50)]
        entries = recorded()
    assert len(entries) <= 10
    sizes = [entry["size"] for entry in entries if entry["action"] == "alloc"]
    assert sizes and min(sizes) >= tensors[-10].numel() and max(sizes) == tensors[-1].numel()


def test_the_history_ends_when_told():
    with history(context=None):
        pass
    before = len(recorded())
    tensors = [filled(1000, 1) for _ in range(5)]
    assert sum(entry["action"] == "alloc" for entry in recorded()[before:]) == 0
    assert len(tensors) == 5


def test_a_live_block_knows_where_it_was_allocated():
    with history(context="all"):
        tensor = torch.empty(7_654_321, dtype=torch.uint8, device="cuda")
        blocks = [block for segment in torch.cuda.memory_snapshot() for block in segment["blocks"]]
    (block,) = [block for block in blocks if block["address"] == tensor.data_ptr()]
    assert block["state"] == "active_allocated" and block["requested_size"] == 7_654_321
    assert any(frame["name"] == "test_a_live_block_knows_where_it_was_allocated" for frame in block["frames"])


@pytest.fixture
def eventful():
    """A snapshot with allocations, frees, a stitch and an out-of-memory in its history."""
    with history(context="all"):
        tensor, between = stitched()
        held = [filled(n * MiB, 1) for n in range(1, 5)]
        del held[::2]
        with limited(64 * MiB), runs_out():
            torch.empty(GiB, dtype=torch.uint8, device="cuda")
        yield torch.cuda.memory._snapshot()
        del tensor, between


@pytest.mark.parametrize("tool", ["trace_plot", "segment_plot", "segsum", "trace"])
def test_pytorchs_viewers_take_a_snapshot(eventful, tool):
    assert len(getattr(_memory_viz, tool)(eventful)) > 100


def test_a_snapshot_without_what_was_freed_plots_too(eventful):
    assert "Active Memory Timeline" in _memory_viz.trace_plot(eventful, filter_freed=True)


def test_a_snapshot_is_json(eventful):
    back = json.loads(json.dumps(eventful))
    assert back["segments"][0]["address"] == eventful["segments"][0]["address"]
    assert len(back["device_traces"][0]) == len(eventful["device_traces"][0])


def test_a_dumped_snapshot_is_read_back(tmp_path):
    path = tmp_path / "snapshot.pickle"
    with history(context="all"):
        tensor = filled(MiB, 1)
        torch.cuda.memory._dump_snapshot(str(path))
        now = torch.cuda.memory._snapshot()
    back = pickle.loads(path.read_bytes())
    assert set(back) == set(now)
    assert back["segments"] == now["segments"]
    assert [entry["action"] for entry in back["device_traces"][0]].count("alloc") >= 1
    assert wrong(tensor, 1).item() == 0


def test_emptying_the_cache_gives_memory_back_to_the_device():
    base = torch.cuda.memory_reserved()
    before = torch.cuda.mem_get_info()[0]
    tensor = filled(2 * GiB, 1)
    assert torch.cuda.mem_get_info()[0] <= before - 2 * GiB + 64 * MiB
    del tensor
    assert torch.cuda.memory_reserved() >= base + 2 * GiB
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() == base
    assert torch.cuda.mem_get_info()[0] >= before - 64 * MiB


def test_a_memory_fraction_is_a_limit_until_it_is_lifted():
    with limited(GiB):
        assert 0 < torch.cuda.get_per_process_memory_fraction() < 1
        held = filled(512 * MiB, 1)
        with pytest.raises(torch.OutOfMemoryError):
            torch.empty(2 * GiB, dtype=torch.uint8, device="cuda")
    assert torch.cuda.get_per_process_memory_fraction() == 1.0
    more = torch.empty(2 * GiB, dtype=torch.uint8, device="cuda")
    assert wrong(held, 1).item() == 0 and more.numel() == 2 * GiB


def test_what_is_cached_makes_room_within_the_limit():
    with limited(GiB):
        for size in (300 * MiB, 700 * MiB, 50 * MiB, 900 * MiB):
            tensor = filled(size, 1)
            assert wrong(tensor[::4096], 1).item() == 0
            del tensor


def test_the_out_of_memory_observer_is_told_four_numbers():
    told = []
    torch._C._cuda_attach_out_of_memory_observer(lambda *numbers: told.append(numbers))
    with limited(64 * MiB), runs_out():
        torch.empty(GiB, dtype=torch.uint8, device="cuda")
    assert len(told) == 1
    device, asked, total, free = told[0]
    assert device == torch.cuda.current_device()
    assert asked == GiB
    assert 0 < total
    assert 0 <= free <= torch.cuda.mem_get_info()[1]


def test_without_the_cache_memory_comes_from_the_driver():
    base = torch.cuda.memory_allocated()
    kept = torch.cuda.caching_allocator_alloc(3 * MiB)
    torch.cuda.caching_allocator_enable(False)
    try:
        before = torch.cuda.memory_allocated()
        address = torch.cuda.caching_allocator_alloc(5 * MiB)
        tensor = filled(4 * MiB, 3)
        assert torch.cuda.memory_allocated() == before
        assert wrong(tensor, 3).item() == 0
        torch.cuda.caching_allocator_delete(address)
        torch.cuda.caching_allocator_delete(kept)  # goes back where it is from
        del tensor
    finally:
        torch.cuda.caching_allocator_enable(True)
    assert torch.cuda.memory_allocated() == base


def test_raw_allocations_are_served_and_counted():
    base = torch.cuda.memory_allocated()
    address = torch.cuda.caching_allocator_alloc(3 * MiB)
    other = torch.cuda.caching_allocator_alloc(5 * MiB, stream=torch.cuda.Stream())
    assert address != other and address % 512 == other % 512 == 0
    assert torch.cuda.memory_allocated() >= base + 8 * MiB
    torch.cuda.caching_allocator_delete(address)
    torch.cuda.caching_allocator_delete(other)
    assert torch.cuda.memory_allocated() == base


def test_the_profiler_sees_allocations_and_frees():
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as prof:
        kept = torch.empty(4 * MiB, dtype=torch.uint8, device="cuda")
        gone = torch.empty(2 * MiB, dtype=torch.uint8, device="cuda")
        del gone
    moved = [event.self_device_memory_usage for event in prof.events()]
    assert sum(n for n in moved if n > 0) == 6 * MiB
    assert sum(n for n in moved if n < 0) == -2 * MiB
    assert kept.numel() == 4 * MiB


@pytest.mark.parametrize("precision", [torch.float32, torch.float16])
def test_cudnn_may_try_out_its_algorithms(precision):
    torch.manual_seed(0)
    convolution = torch.nn.Conv2d(16, 32, 3, padding=1).to("cuda", precision)
    images = torch.randn(8, 16, 64, 64, device="cuda", dtype=precision, requires_grad=True)

    def gradients(benchmark):
        with torch.backends.cudnn.flags(enabled=True, benchmark=benchmark, deterministic=False, allow_tf32=False):
            output, inputs = convolution(images), [images, *convolution.parameters()]
            return [output.detach(), *torch.autograd.grad(output.float().square().mean(), inputs)]

    for found, expected in zip(gradients(True), gradients(False)):
        torch.testing.assert_close(found, expected, rtol=1e-2, atol=1e-3)


def test_listing_the_gpus_processes_works_as_ever():
    try:
        text = torch.cuda.list_gpu_processes()
    except Exception as error:
        pytest.skip(f"the machine doesn't tell: {error}")
    assert isinstance(text, str) and text


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("settings", ["max_split_size_mb:64", "garbage_collection_threshold:0.8", ""])
def test_allocator_settings_of_pytorchs_own_are_passed_over(settings):
    torch.cuda.memory._set_allocator_settings(settings)
    tensor = filled(64 * MiB, 1)
    assert wrong(tensor, 1).item() == 0


def test_metadata_set_by_the_user_stands_in_the_history():
    with history(context="all"):
        torch.cuda.memory._set_memory_metadata("phase one")
        try:
            assert torch.cuda.memory._get_memory_metadata() == "phase one"
            tensor = torch.empty(1_234_567, dtype=torch.uint8, device="cuda")
        finally:
            torch.cuda.memory._set_memory_metadata("")
        (entry,) = [e for e in recorded() if e["action"] == "alloc" and e["size"] == tensor.numel()]
    assert entry.get("user_metadata", "") == "phase one"
