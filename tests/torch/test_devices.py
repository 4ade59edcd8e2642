"""Two GPUs, in one process and in two."""

import gmlake
import pytest
import torch
from fresh_process import run_gmlake, run_python
from on_device import GiB, MiB, allocated, figure, filled, limited, reserved, runs_out, settle, stitched, wrong

pytestmark = pytest.mark.gpus(2)


def test_each_device_has_memory_and_figures_of_its_own():
    settle()
    before = [allocated(device) for device in range(2)]
    tensors = [filled((1 + device) * 64 * MiB, device, f"cuda:{device}") for device in range(2)]
    assert [allocated(device) - was for device, was in enumerate(before)] == [64 * MiB, 128 * MiB]
    assert [wrong(tensor, device).item() for device, tensor in enumerate(tensors)] == [0, 0]
    assert gmlake.stats(0) and gmlake.stats(1)
    assert min(reserved(0), reserved(1)) >= 64 * MiB
    del tensors
    assert [allocated(device) for device in range(2)] == before


def test_memory_belongs_to_the_device_it_was_asked_on_whichever_is_current():
    base = allocated(1)
    with torch.cuda.device(0):
        tensor = filled(32 * MiB, 1, "cuda:1")
    assert tensor.device.index == 1 and allocated(1) == base + 32 * MiB
    with torch.cuda.device(0):
        del tensor
    assert allocated(1) == base


def test_a_limit_on_one_device_leaves_the_other_alone():
    settle()
    filled(MiB, 1, "cuda:1")
    with limited(256 * MiB, device=1):
        other = filled(GiB, 1, "cuda:0")
        with runs_out():
            torch.empty(GiB, dtype=torch.uint8, device="cuda:1")
    assert wrong(other, 1).item() == 0


@pytest.mark.parametrize("source, target", [(0, 1), (1, 0)])
def test_stitched_blocks_are_copied_between_devices(source, target):
    from_here, between = stitched(device=source)
    to_there, others = stitched(device=target)
    numbers = torch.arange(from_here.numel() // 8, device=f"cuda:{source}")
    from_here.copy_(numbers.view(torch.uint8))
    to_there.copy_(from_here)
    assert torch.equal(to_there.cpu(), from_here.cpu())
    assert [wrong(part, 1).item() for part in between + others] == [0] * 8


def test_a_copy_in_flight_keeps_its_memory():
    source = filled(256 * MiB, 7, "cuda:0")
    torch.cuda.synchronize(0)
    with torch.cuda.device(0):
        torch.cuda._sleep(200_000_000)
    seen = source.to("cuda:1", non_blocking=True)
    del source
    others = [filled(64 * MiB, 1, "cuda:0") for _ in range(8)]
    torch.cuda.synchronize(0)
    torch.cuda.synchronize(1)
    assert wrong(seen, 7).item() == 0
    assert all(wrong(tensor, 1).item() == 0 for tensor in others)


def test_a_kernel_reads_the_other_devices_memory_directly():
    if not torch.cuda.can_device_access_peer(0, 1):
        pytest.skip("the devices have no access to each other's memory")
    tensor, between = stitched(device=1)
    tensor.fill_(3)
    torch.cuda.synchronize(1)
    # A strided copy between devices with peer access is one kernel that reads the other's memory.
    gathered = torch.empty(tensor.numel() // 4, dtype=torch.uint8, device="cuda:0")
    gathered.copy_(tensor[::4])
    assert wrong(gathered, 3).item() == 0
    assert len(between) == 4


def test_autograd_crosses_devices():
    base = [figure("live", device) for device in range(2)]
    weights = [torch.full((256, 256), 0.01, device=f"cuda:{device}", requires_grad=True) for device in range(2)]
    for n in range(10):
        x = torch.ones(64 * (n + 1), 256, device="cuda:0")
        ((x @ weights[0]).to("cuda:1") @ weights[1]).sum().backward()
    rows = sum(64 * (n + 1) for n in range(10))
    for weight in weights:
        torch.testing.assert_close(weight.grad.cpu(), torch.full((256, 256), rows * 2.56), rtol=1e-3, atol=0)
    del weights, weight, x
    settle()
    assert [figure("live", device) for device in range(2)] == base


MODEL = """
import copy, os
import torch
import torch.distributed as dist
from torch import nn

rank = int(os.environ["RANK"])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl", device_id=torch.device("cuda", torch.cuda.current_device()))


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 8)).cuda()


def train(model, mine):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    numbers = torch.Generator().manual_seed(1)
    for n in range(8):
        rows = torch.randn(64 + 32 * n, 64, generator=numbers)
        rows = (rows[rank::2] if mine else rows).cuda()
        model(rows).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def close(some, others):
    for one, other in zip(some, others, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


single = model()
train(single, mine=False)
"""

DATA_PARALLEL = """
import gmlake, json
from torch.nn.parallel import DistributedDataParallel

assert gmlake.enabled(), "the rank runs without gmlake"
parallel = DistributedDataParallel(model(), device_ids=[torch.cuda.current_device()])
train(parallel, mine=True)
close(parallel.module.parameters(), single.parameters())
dist.barrier()
if rank == 0:
    print("VALUE " + json.dumps(gmlake.enabled()), flush=True)
dist.destroy_process_group()
"""

SHARDED = """
from torch.distributed.fsdp import fully_shard
from on_device import MiB, filled, stitched, wrong

sharded = model()
for layer in sharded:
    if isinstance(layer, nn.Linear):
        fully_shard(layer)
fully_shard(sharded)
train(sharded, mine=True)
close([p.full_tensor() for p in sharded.parameters()], single.parameters())

device = torch.cuda.current_device()
reduced, between = stitched(device=device)
reduced.fill_(1 + rank)
dist.all_reduce(reduced)
bad = [wrong(reduced, 3).item()]
with gmlake.one_handle():
    single_handle = filled(64 * MiB, 1 + rank)
dist.all_reduce(single_handle)
bad.append(wrong(single_handle, 3).item())
for n in range(20):  # collectives that are still in flight when their tensor is freed
    gathered = torch.empty(2 * 8 * MiB, dtype=torch.uint8, device="cuda")
    part = filled(8 * MiB, 10 * rank + n)
    work = dist.all_gather_into_tensor(gathered, part, async_op=True)
    del part
    other = filled(8 * MiB, 99)
    work.wait()
    bad.append(sum(wrong(gathered[r * 8 * MiB : (r + 1) * 8 * MiB], 10 * r + n).item() for r in range(2)))
dist.barrier()
if rank == 0:
    hand_back(bad)
dist.destroy_process_group()
"""

TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
# NCCL's multicast memory is its own, and not looked at here.
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "NCCL_NVLS_ENABLE": "0"}


@pytest.mark.slow
def test_the_launcher_reaches_torchruns_ranks_and_data_parallel_training_is_as_single(tmp_path):
    script = tmp_path / "trains.py"
    script.write_text(MODEL + DATA_PARALLEL)
    done = run_python("-m", "gmlake", "--level", gmlake.enabled(), *TORCHRUN, script, env=ENVIRONMENT)
    assert done.value == gmlake.enabled()


@pytest.mark.slow
def test_sharded_training_is_as_single_and_collectives_take_stitched_memory():
    done = run_gmlake(MODEL + SHARDED, launcher=TORCHRUN, env=ENVIRONMENT)
    assert done.value == [0] * 22
