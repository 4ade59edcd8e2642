"""How a process with gmlake in it begins, forks and ends, and what it's told when something is wrong."""

import os
import pathlib
import tempfile
import textwrap

import gmlake
import pytest
from fresh_process import PROLOGUE, run_gmlake, run_native, run_python, together

FORKS = """
import os
import torch

tensors = [torch.full((1 << 20,), float(n), device="cuda") for n in range(8)]
gradient = torch.ones(1000, device="cuda", requires_grad=True)
(gradient * 2).sum().backward()


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, n):
        return torch.tensor(float(n * n))


loader = torch.utils.data.DataLoader(Squares(), batch_size=8, num_workers=2, multiprocessing_context="fork")
total = 0.0
for _ in range(2):
    for batch in loader:
        total += batch.cuda().sum().item()

child = os.fork()
if child == 0:
    del tensors[0]  # lets go of memory that isn't the child's
    raise SystemExit(0)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
after = [tensor[0].item() for tensor in tensors]
hand_back({"total": total, "status": status, "after": after, "more": torch.ones(1 << 24, device="cuda").sum().item()})
"""

FORKS_FIRST = """
import os
import torch

read, write = os.pipe()
child = os.fork()
if child == 0:
    os.write(write, str(torch.ones(1 << 20, device="cuda").sum().item()).encode())
    os._exit(0)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
hand_back({"status": status, "child": float(os.read(read, 100)), "parent": torch.ones(1 << 21, device="cuda").sum().item()})
"""

EXITS = """
import threading
import torch

stream = torch.cuda.Stream()
tensors = [torch.ones(1 << 20, device="cuda") for _ in range(8)]
with torch.cuda.stream(stream):
    beside = torch.ones(1 << 22, device="cuda")
    torch.cuda._sleep(100_000_000)
tensors[0].record_stream(stream)
del tensors[0]
static = torch.ones(1 << 20, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    output = static * 2
graph.replay()


class Late:
    # lets go of memory while the interpreter goes down
    def __init__(self):
        self.tensor = torch.ones(1 << 20, device="cuda")

    def __del__(self):
        del self.tensor


kept = Late()
kept.itself = kept  # a cycle, which only the last collection breaks
threading.current_thread().tensor = torch.ones(1 << 20, device="cuda")
hand_back(output[0].item())
"""

FAILS = """
import torch
tensor = torch.ones(1 << 20, device="cuda")
raise SystemExit(7)
"""

UNDER_THE_LAUNCHER = """
import gmlake, json, os, subprocess, sys
import torch

child = subprocess.run(
    [sys.executable, "-c", "import torch, gmlake; torch.ones(1, device='cuda'); print(gmlake.enabled())"],
    capture_output=True, text=True, check=True)
idle = subprocess.run(
    [sys.executable, "-c", "import sys; print('torch' in sys.modules)"], capture_output=True, text=True, check=True)
tensor = torch.ones(1 << 20, device="cuda")
try:
    torch.empty(4 << 30, dtype=torch.uint8, device="cuda")
    refused = ""
except RuntimeError as error:
    refused = str(error)
print("VALUE " + json.dumps({
    "argv": sys.argv[1:], "name": __name__, "file": os.path.basename(__file__), "beside": sys.path[0],
    "level": gmlake.enabled(), "child": child.stdout.strip(), "idle": idle.stdout.strip(), "refused": refused}))
"""

ENABLES = """
import torch, gmlake
try:
    gmlake.enable({keywords})
    torch.ones(1, device="cuda")
    hand_back("")
except Exception as error:
    hand_back(str(error))
"""

TOO_LATE = """
import torch, gmlake
before = torch.ones(1 << 20, device="cuda")
try:
    gmlake.enable(level={level!r})
    said = ""
except Exception as error:
    said = str(error)
after = torch.ones(1 << 20, device="cuda").add(before).sum().item()
hand_back({{"said": said, "enabled": gmlake.enabled(), "after": after}})
"""

IDEMPOTENT = """
import torch
x = torch.ones(1 << 20, device="cuda")
gmlake.enable(level=gmlake.enabled(), limit="20GiB")
try:
    gmlake.enable(level=gmlake.enabled(), limit="10GiB")
    said = ""
except Exception as error:
    said = str(error)
hand_back({"said": said, "sum": x.sum().item()})
"""

NOTED = """
import torch
x = torch.ones(1 << 20, device="cuda")
gmlake.enable(level=gmlake.enabled())
torch.cuda.empty_cache()
hand_back(x.sum().item())
"""

UNSTITCHED = """
from on_device import figure, stitched
try:
    stitched()
except AssertionError:
    pass
hand_back(figure("stitches_made"))
"""

CONF = "max_split_size_mb:64,garbage_collection_threshold:0.8"


def launched():
    """`python -m gmlake` with settings in front of a script with arguments of its own."""
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder) / "trains.py"
        script.write_text(UNDER_THE_LAUNCHER)
        trace, page = pathlib.Path(folder) / "run.csv.gz", pathlib.Path(folder) / "page.html"
        done = run_python(
            "-m",
            "gmlake",
            "--level",
            gmlake.enabled(),
            "--limit",
            "2GiB",
            "--record",
            trace,
            "--report",
            page,
            script,
            "--lr",
            "0.1",
            "data",
        )
        return done.value | {"folder": os.path.realpath(folder), "wrote": [trace.exists(), page.exists()]}


@pytest.fixture(scope="module")
def runs():
    def enabling(keywords="", **env):
        return lambda: run_python_text(ENABLES.format(keywords=keywords), env)

    return together(
        {
            "forks": lambda: run_gmlake(FORKS),
            "forks first": lambda: run_gmlake(FORKS_FIRST),
            "exits": lambda: run_gmlake(EXITS),
            "fails": lambda: run_gmlake(FAILS, expect=7),
            "launched": launched,
            "unknown key": enabling(GMLAKE_LIMITS="1GiB"),
            "unknown keyword": enabling("limits='1GiB'"),
            "bad preset": enabling(GMLAKE_PRESET="puddle"),
            "bad limit": enabling(GMLAKE_LIMIT="banana"),
            "bad level": enabling("level='half'"),
            "too late": lambda: run_native(TOO_LATE.format(level=gmlake.enabled())),
            "idempotent": lambda: run_gmlake(IDEMPOTENT, limit="20GiB"),
            "unstitched": lambda: run_gmlake(UNSTITCHED, env={"vmmDefragment": "0"}),
            "noted": lambda: run_gmlake(NOTED, env={"PYTORCH_CUDA_ALLOC_CONF": CONF}),
        }
    )


def run_python_text(script, env):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "script.py"
        path.write_text(PROLOGUE + textwrap.dedent(script))
        return run_python(path, env=env)


def test_workers_and_children_may_be_forked_while_tensors_live(runs):
    done = runs["forks"].result()
    squares, numbers = float(sum(n * n for n in range(64))), [float(n) for n in range(8)]
    assert done.value == {"total": 2 * squares, "status": 0, "after": numbers, "more": float(1 << 24)}
    assert done.err == ""


def test_a_process_that_forks_before_it_uses_the_gpu_leaves_its_child_free_to(runs):
    assert runs["forks first"].result().value == {"status": 0, "child": float(1 << 20), "parent": float(1 << 21)}


def test_a_process_exits_quietly_with_live_tensors_graphs_and_queued_work(runs):
    done = runs["exits"].result()
    assert done.value == 2.0
    assert done.err == ""


def test_a_process_exits_with_the_status_it_chose(runs):
    assert runs["fails"].result().err == ""


def test_the_launcher_runs_a_script_as_python_would(runs):
    done = runs["launched"].result()
    assert done["argv"] == ["--lr", "0.1", "data"]
    assert done["name"] == "__main__" and done["file"] == "trains.py"
    assert os.path.realpath(done["beside"]) == done["folder"]


def test_the_launcher_switches_gmlake_on_with_its_settings(runs):
    done = runs["launched"].result()
    assert done["level"] == gmlake.enabled()
    assert "CUDA out of memory" in done["refused"]


def test_the_launcher_switches_it_on_in_child_processes_that_use_pytorch(runs):
    done = runs["launched"].result()
    assert done["child"] == gmlake.enabled()
    assert done["idle"] == "False"


def test_the_launcher_leaves_a_trace_and_a_report(runs):
    assert runs["launched"].result()["wrote"] == [True, True]


@pytest.mark.parametrize(
    "run, words",
    [
        ("unknown key", ["limits", "limit", "preset", "chunk"]),
        ("unknown keyword", ["limits", "limit", "preset", "chunk"]),
        ("bad preset", ["puddle", "lake"]),
        ("bad limit", ["banana", "limit"]),
        ("bad level", ["half", "full", "plain"]),
    ],
)
def test_a_mistaken_setting_is_refused_with_what_is_known(runs, run, words):
    said = runs[run].result().value.lower()
    assert said, "nothing was refused"
    assert [word for word in words if word not in said] == []


def test_settings_of_pytorchs_own_allocator_are_noted_once(runs):
    done = runs["noted"].result()
    assert done.value == float(1 << 20)
    assert done.err.count("max_split_size_mb") == 1


def test_gmlakes_own_variables_are_obeyed(runs):
    assert runs["unstitched"].result().value == 0


def test_switching_on_is_refused_once_cuda_memory_is_in_use(runs):
    done = runs["too late"].result().value
    assert done["said"]
    assert done["enabled"] is None
    assert done["after"] == 2.0 * (1 << 20)


def test_switching_on_again_is_fine_with_the_same_settings_only(runs):
    done = runs["idempotent"].result().value
    assert done["said"]
    assert done["sum"] == float(1 << 20)
