"""bench/compare.py with commands that only say what a training run would: no PyTorch, no GPU. For the probe a module of
a few lines stands in for PyTorch."""

import contextlib
import functools
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import time

import pytest

CHECKOUT = pathlib.Path(__file__).parents[2]
sys.path.append(str(CHECKOUT / "bench"))

import compare  # noqa: E402
from comparison import results, table  # noqa: E402
from comparison.caps import STEP, smallest_cap  # noqa: E402
from comparison.ratio import in_turn, ratio_to_best  # noqa: E402
from comparison.run import own_records, run, steady  # noqa: E402

GiB = 1 << 30

# A GPU of 80 GiB, 1 GiB of it taken before, and an allocator that must stay within its fraction.
TORCH = """
import os, sys, types
version = types.SimpleNamespace(cuda="13.0")
__version__ = "2.11.0"
GiB = 1 << 30
taken, peak, fraction, queued, asked = 1 * GiB, 0, 1.0, [], []

def initialize():
    while queued:
        queued.pop(0)()

def allocate(size):
    global taken, peak
    initialize()
    if peak + size > fraction * 80 * GiB:
        raise RuntimeError("CUDA out of memory. Tried to allocate")
    taken += size
    peak += size

def _limit(f, device):
    global fraction
    fraction = f

def _info(device):
    asked.append(device)
    return 80 * GiB - taken, 80 * GiB

cuda = types.SimpleNamespace(
    _lazy_call=queued.append, mem_get_info=_info, device_count=lambda: 2, current_device=lambda: 0,
    set_per_process_memory_fraction=_limit, get_device_name=lambda d: "Fake GPU", is_initialized=lambda: True,
    memory_stats=lambda d: {"requested_bytes.all.peak": peak - GiB // 2, "reserved_bytes.all.peak": peak,
                            "num_alloc_retries": 3})
def _reset(device):
    global peak
    peak = GiB // 2

_C = types.SimpleNamespace(_cuda_resetPeakMemoryStats=_reset)
cuda.reset_peak_memory_stats = lambda device=0: _C._cuda_resetPeakMemoryStats(device)
_hooks = []

class Optimizer:
    def step(self):
        for hook in _hooks:
            hook(self, (), {})

optim = types.ModuleType("torch.optim")
optim.optimizer = types.ModuleType("torch.optim.optimizer")
optim.optimizer.register_optimizer_step_post_hook = _hooks.append
optim.Optimizer = Optimizer
__path__ = []
sys.modules["torch.optim"], sys.modules["torch.optim.optimizer"] = optim, optim.optimizer
"""


def python(folder, program):
    """A command that runs a program."""
    path = folder / "train.py"
    path.write_text(program)
    return [sys.executable, str(path)]


def says(folder, **record):
    return python(folder, f"import json\nprint('loading')\nprint('REC ' + {json.dumps(record)!r})")


@pytest.fixture
def with_torch(tmp_path, monkeypatch):
    """A folder whose programs can import the module that stands in for PyTorch."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site/torch.py").write_text(TORCH)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    return tmp_path


def test_a_ratio_is_of_medians_and_to_the_best():
    assert ratio_to_best([9.0], [[10.0], [12.0]]).value == pytest.approx(0.9)
    assert ratio_to_best([1.0, 2.0, 30.0], [[4.0, 4.0, 4.0]]).value == pytest.approx(0.5)


def test_a_single_run_has_no_interval():
    assert ratio_to_best([9.0], [[10.0, 11.0]]).interval is None
    assert ratio_to_best([9.0, 9.0], [[10.0, 11.0], [12.0]]).interval is None


def test_there_is_no_ratio_to_nothing():
    assert ratio_to_best([], [[1.0]]) is None
    assert ratio_to_best([1.0], [[]]) is None


def test_an_interval_holds_the_ratio_and_is_as_wide_as_the_runs_vary():
    steady_ = ratio_to_best([9.0, 9.0, 9.0, 9.0], [[10.0, 10.0, 10.0]])
    assert steady_.interval == pytest.approx((0.9, 0.9))
    loose = ratio_to_best([8.0, 9.0, 10.0, 9.0, 8.5], [[9.0, 10.0, 11.0, 10.0, 9.5]])
    low, high = loose.interval
    assert low < loose.value < high
    assert low >= 8 / 11 and high <= 10 / 9


def test_an_interval_is_the_same_each_time():
    runs = [8.0, 9.0, 10.0], [[9.0, 10.0, 11.0]]
    assert ratio_to_best(*runs) == ratio_to_best(*runs)


def test_allocators_take_turns_forwards_and_backwards():
    assert in_turn(["a", "b", "c"], 3) == ["a", "b", "c", "c", "b", "a", "a", "b", "c"]


def test_a_drift_meets_all_allocators_alike():
    order = in_turn(["a", "b", "c"], 4)
    when = {name: statistics.mean(n for n, other in enumerate(order) if other == name) for name in "abc"}
    assert len(set(when.values())) == 1


@pytest.mark.parametrize("needed", [1000.0, 1000.1, 1004.9, 1005.0, 1250.0, 1499.9, 1500.0])
def test_bisection_finds_the_smallest_cap_to_half_a_percent(needed):
    tried = []

    def survives(cap):
        tried.append(cap)
        return cap >= needed

    found = smallest_cap(1000, 1500, survives)
    assert needed <= found < needed + 1000 * STEP + 1e-6
    assert min(tried) >= 1000 and len(tried) <= 7 and len(set(tried)) == len(tried)


def test_a_run_that_survives_no_cap_has_none():
    assert smallest_cap(1000, 1500, lambda cap: False) is None


def test_a_peak_no_higher_than_what_is_requested_is_one_cap():
    tried = []
    assert smallest_cap(1000, 1000, lambda cap: tried.append(cap) or True) == 1000
    assert tried == [1000]


def test_lines_that_a_command_prints_of_itself_are_found_among_others():
    output = 'REC {"ms_med": 1}\n[rank1]: REC {"ms_med": 3, "more": {"x": 1}}\nREC {broken\nRECORD {"ms_med": 9}\n'
    assert [record["ms_med"] for record in own_records(output)] == [1, 3]


def test_the_first_steps_are_left_out_where_enough_remain():
    assert steady([100, 50, 1, 2, 3]) == [1, 2, 3]
    assert steady([100, 50, 1]) == [100, 50, 1]


def test_a_run_takes_what_the_command_says_of_itself(tmp_path):
    command = says(tmp_path, ms_med=12.5, steps=9, peak_used_mib=300, requested_mib=200, reserved_mib=250, retries=2)
    done = run(command, "native")
    assert done.ok and done.status == 0 and done.wall_s > 0
    assert (done.step_ms, done.steps, done.peak_used_mib, done.requested_mib, done.reserved_mib, done.retries) == (
        12.5,
        9,
        300,
        200,
        250,
        2,
    )


def test_of_ranks_the_greatest_memory_and_the_median_time_count(tmp_path):
    ranks = [{"ms_med": t, "peak_used_mib": m} for t, m in ((10, 5), (30, 7), (20, 6))]
    done = run(python(tmp_path, f"import json\nfor r in {ranks!r}: print('REC ' + json.dumps(r))"), "native")
    assert (done.step_ms, done.peak_used_mib) == (20, 7)


def test_of_what_a_command_says_only_what_makes_sense_counts(tmp_path):
    odd = [
        {"ms_med": "12", "peak_used_mib": "x", "ok": "no", "err": ["?"]},
        {"ms_med": [1], "reserved_mib": True, "requested_mib": -1, "steps": 0},
        {"ms_med": 0, "peak_used_mib": float("nan"), "reserved_mib": float("inf"), "retries": 10**400},
        {"ms_med": 5, "requested_mib": 0, "steps": 3},
    ]
    done = run(
        python(tmp_path, f"import json\nfrom math import inf, nan\nfor r in {odd!r}: print('REC ' + json.dumps(r))"),
        "native",
    )
    assert done.ok and done.err == ""
    assert (done.step_ms, done.steps, done.requested_mib) == (5, 3, 0)
    assert (done.peak_used_mib, done.reserved_mib, done.retries) == (None, None, None)


def test_a_command_that_says_it_failed_has_failed_although_it_exits_with_0(tmp_path):
    done = run(says(tmp_path, ok=False, err="CUDA out of memory. Tried"), "native")
    assert not done.ok and done.status == 0 and done.err == "CUDA out of memory. Tried"


def test_a_crash_is_told_by_its_status_and_its_last_error(tmp_path):
    done = run(python(tmp_path, "raise KeyError('missing')"), "native")
    assert not done.ok and done.status == 1 and done.err == "KeyError: 'missing'"


def test_a_command_that_is_not_there_is_told(tmp_path):
    done = run([str(tmp_path / "nowhere")], "native")
    assert not done.ok and "nowhere" in done.err


def starts_another(folder, how="", then="time.sleep(60)"):
    """A command whose child goes on changing a file for a minute, and that file."""
    alive = folder / "alive"
    ticking = f"import time\nfor n in range(3000): open({str(alive)!r}, 'w').write(str(n)); time.sleep(0.02)"
    start = f"subprocess.Popen([sys.executable, '-c', {ticking!r}], {how})"
    until = f"while not os.path.exists({str(alive)!r}): time.sleep(0.01)"
    return python(folder, f"import os, subprocess, sys, time\nchild = {start}\n{until}\n{then}"), alive


def changes(file):
    before = file.read_text()
    time.sleep(0.3)
    return file.read_text() != before


def test_a_run_that_takes_too_long_is_ended_with_all_that_it_started(tmp_path):
    command, alive = starts_another(tmp_path)
    began = time.monotonic()
    done = run(command, "native", timeout_s=6.0)
    assert not done.ok and done.status is None and "longer than 6 s" in done.err
    assert time.monotonic() - began < 30
    assert not changes(alive)


def test_an_interruption_ends_the_run_with_all_that_it_started(tmp_path):
    command, alive = starts_another(tmp_path)
    given = [sys.executable, str(CHECKOUT / "bench/compare.py"), "--allocators", "native", "--", *command]
    # A shell's background job ignores interruptions, and so would what it starts.
    heeds = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    comparing = subprocess.Popen(given, stderr=subprocess.DEVNULL, start_new_session=True, preexec_fn=heeds)
    while not alive.exists():
        assert comparing.poll() is None
        time.sleep(0.05)
    comparing.send_signal(signal.SIGINT)
    assert comparing.wait(30) != 0
    assert not changes(alive)


@pytest.mark.parametrize("then, status", [("time.sleep(60)", None), ("", 0)])
def test_what_has_left_the_runs_session_holds_nothing_up(tmp_path, monkeypatch, then, status):
    monkeypatch.setattr("comparison.run._SECONDS_TO_END", 1)
    pid = tmp_path / "pid"
    command, _ = starts_another(
        tmp_path, "start_new_session=True", f"open({str(pid)!r}, 'w').write(str(child.pid))\n{then}"
    )
    began = time.monotonic()
    try:
        done = run(command, "native", timeout_s=6.0)
        assert (done.status, done.ok) == (status, status == 0)
        assert time.monotonic() - began < 12
    finally:
        os.kill(int(pid.read_text()), signal.SIGKILL)


def test_what_a_command_leaves_behind_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr("comparison.run._SECONDS_TO_END", 1)
    command, alive = starts_another(tmp_path, then="print('REC {\"ms_med\": 5}')")
    done = run(command, "native")
    assert done.ok and done.step_ms == 5
    assert not changes(alive)


@pytest.mark.parametrize("allocator, conf", [("native", ""), ("expandable", "expandable_segments:True")])
def test_pytorchs_allocators_are_chosen_by_its_variable_alone(tmp_path, monkeypatch, allocator, conf):
    monkeypatch.setenv("PYTORCH_ALLOC_CONF", "backend:cudaMallocAsync")
    monkeypatch.setenv("GMLAKE_AUTOSTART", "1")
    names = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "GMLAKE_AUTOSTART")
    command = python(
        tmp_path, f"import json, os\nprint('REC ' + json.dumps({{'err': str([os.environ.get(n) for n in {names}])}}))"
    )
    assert run(command, allocator).err == str([conf, None, None])


TRAINS = """
import time, torch
torch.allocate(4 << 30)
torch.allocate(2 << 30)
time.sleep(0.1)
torch.taken -= 5 << 30
optimizer, other = torch.optim.Optimizer(), torch.optim.Optimizer()
for n in range(9):
    time.sleep(0.2 if n < 3 else 0.02)
    optimizer.step()
    other.step()
"""


def test_the_probe_measures_a_program_that_says_nothing(with_torch):
    done = run(python(with_torch, TRAINS), "native")
    assert done.ok, done.err
    assert done.peak_used_mib == 6 * 1024
    assert (done.requested_mib, done.reserved_mib, done.retries) == (5.5 * 1024, 6 * 1024, 3)
    assert done.steps == 9 and 20 <= done.step_ms < 100
    assert done.machine == {"gpu": "Fake GPU", "torch": "2.11.0"}


def test_peaks_that_the_program_resets_count(with_torch):
    done = run(python(with_torch, TRAINS + "\ntorch.cuda.reset_peak_memory_stats()\n"), "native")
    assert (done.requested_mib, done.reserved_mib) == (5.5 * 1024, 6 * 1024)


def test_what_the_command_says_goes_before_the_probe(with_torch):
    done = run(python(with_torch, TRAINS + '\nprint(\'REC {"ms_med": 1.5, "reserved_mib": 7}\')'), "native")
    assert (done.step_ms, done.reserved_mib, done.peak_used_mib) == (1.5, 7, 6 * 1024)


def test_a_probes_file_that_is_damaged_is_passed_over(with_torch):
    damage = """
import os
for n, text in enumerate(("{", "[]", "{}")):
    open(os.path.join(os.environ["COMPARE_PROBE"], f"{n}.json"), "w").write(text)
"""
    done = run(python(with_torch, TRAINS + damage), "native")
    assert done.ok and done.steps == 9 and done.peak_used_mib == 6 * 1024


def test_a_probes_file_has_its_name_when_it_is_whole(with_torch):
    program = """
import pathlib, torch
torch.allocate(1 << 30)
write = pathlib.Path.write_text
def watched(path, text):
    write(path, text[:5])
    print('REC {"err": "%s"}' % list(path.parent.glob("*.json")))
    write(path, text)
pathlib.Path.write_text = watched
"""
    done = run(python(with_torch, program), "native")
    assert done.err == "[]" and done.reserved_mib == 1024


def test_the_probe_sets_the_cap_before_the_program_allocates(with_torch):
    assert run(python(with_torch, TRAINS), "native", cap_mib=6 * 1024).ok
    done = run(python(with_torch, TRAINS), "native", cap_mib=6 * 1024 - 1)
    assert not done.ok and "CUDA out of memory" in done.err


def test_the_probe_measures_the_ranks_own_device(with_torch, monkeypatch):
    monkeypatch.setenv("LOCAL_RANK", "1")
    program = (
        'import time, torch\ntorch.allocate(1 << 30)\ntime.sleep(0.05)\nprint(\'REC {"err": "%s"}\' % set(torch.asked))'
    )
    assert run(python(with_torch, program), "native").err == "{1}"


def test_a_program_that_does_not_use_cuda_leaves_no_figures(with_torch):
    done = run(python(with_torch, "import torch"), "native")
    assert done.ok and done.peak_used_mib is None and done.step_ms is None


def test_a_forked_child_leaves_no_figures_of_its_own(with_torch):
    program = """
import os, torch
torch.allocate(1 << 30)
if os.fork() == 0:
    torch.peak = 9 << 40
    raise SystemExit
os.wait()
"""
    assert run(python(with_torch, program), "native").reserved_mib == 1024


GMLAKE = """
import torch
def enable():
    torch.order = ["gmlake"] + [str(len(torch.queued))]
def enabled():
    return "plain"
def stats(device):
    return {"requested_peak": 3 << 30, "reserved_peak": 4 << 30, "retries": 1, "stitches_made": 8}
"""


@pytest.fixture
def with_gmlake(with_torch, monkeypatch):
    """The package with its sitecustomize, and instead of the rest a few lines."""
    package = with_torch / "site/gmlake"
    (package / "lib").mkdir(parents=True)
    (package / "lib/libgmlake_torch_plain.so").touch()
    (package / "__init__.py").write_text(GMLAKE)
    child = CHECKOUT / "examples/pytorch/gmlake/child"
    (package / "child").symlink_to(child)
    # The package that is found is the one that children are to use.
    monkeypatch.setattr("importlib.util.find_spec", lambda name: finder(name, package))
    return with_torch


def finder(name, package):
    import importlib.machinery

    assert name == "gmlake"
    return importlib.machinery.PathFinder.find_spec(name, [str(package.parent)])


def test_gmlake_is_switched_on_before_the_probe_looks(with_gmlake):
    program = 'import torch\nprint(\'REC {"err": "%s"}\' % torch.order)\ntorch.allocate(1 << 30)'
    done = run(python(with_gmlake, program), "gmlake")
    assert done.err == "['gmlake', '0']"


def test_under_a_pluggable_allocator_the_figures_are_gmlakes(with_gmlake):
    done = run(python(with_gmlake, "import torch\ntorch.allocate(1 << 30)"), "gmlake")
    assert done.ok, done.err
    assert (done.level, done.requested_mib, done.reserved_mib, done.retries) == ("plain", 3072, 4096, 1)
    assert done.gmlake["stitches_made"] == 8


def line(allocator, step_ms=100.0, reserved=1000.0, session="2026-01-01T00:00:00+00:00", name="toy", **more):
    return {
        "kind": "run", "session": session, "name": name, "command": ["x"], "allocator": allocator, "ok": True,
        "status": 0, "wall_s": 5.0, "step_ms": step_ms, "steps": 10, "peak_used_mib": reserved + 300,
        "requested_mib": 900.0, "reserved_mib": reserved, "retries": 0, "cap_mib": None, "err": "", "level": None,
        "gmlake": None, "machine": {"gpu": "Fake GPU", "torch": "2.11.0", "driver": "580.1"},
    } | more  # fmt: skip


def cap(allocator, mib, **more):
    return {"kind": "cap", "session": line("x")["session"], "name": "toy", "allocator": allocator,
            "smallest_cap_mib": mib, "tried": [], "machine": {}} | more  # fmt: skip


THREE = [
    line("native", 100.0, 1800.0), line("expandable", 110.0, 1200.0), line("gmlake", 99.0, 1000.0, level="full"),
    line("gmlake", 95.0, 1000.0, level="full"), line("expandable", 108.0, 1200.0), line("native", 102.0, 1800.0),
]  # fmt: skip


def cells(text, first):
    (row,) = [row for row in text.splitlines() if row.startswith(f"| {first} |")]
    return [cell.strip() for cell in row.strip("|").split("|")]


def test_the_table_has_a_row_a_workload_with_waste_and_the_ratio_to_the_better():
    text = table.markdown(results.workloads(THREE))
    row = cells(text, "toy")
    assert row[1:8] == ["900", "1,800 (50.0%)", "1,200 (25.0%)", "1,000 (10.0%)", "101.0", "109.0", "97.0"]
    assert row[8].startswith("0.960 [0.9") and row[9] == "–"
    assert "Fake GPU, driver 580.1, torch 2.11.0" in text
    widths = {row.count("|") for row in text.splitlines() if row.startswith("|")}
    assert len(widths) == 1


def test_the_table_tells_of_all_steps_the_first_ones_included_where_runs_did():
    lines = [one | {"total_s": total} for one, total in zip(THREE, (10.0, 12.0, 9.0, 9.0, 12.0, 10.0))]
    (workload,) = results.workloads(lines)
    assert cells(table.markdown([workload]), "toy")[9] == "0.900 [0.900, 0.900]"
    assert "0.900 [0.900, 0.900]" in table.details(workload)


def test_the_table_shows_the_smallest_caps_where_there_are_any():
    row = cells(table.markdown(results.workloads(THREE + [cap("native", 1700.0), cap("gmlake", 910.0)])), "toy")
    assert row[-3:] == ["1,700", "–", "910"]


def test_a_workload_that_did_not_complete_says_why_in_the_table():
    lost = {"ok": False, "reserved_mib": None, "step_ms": None}
    lines = [
        line("native", **lost, err="CUDA out of memory. Tried"),
        line("expandable", **lost, err="x"),
        line("gmlake"),
    ]
    assert cells(table.markdown(results.workloads(lines)), "toy")[2:4] == ["out of memory", "failed"]


def test_failed_runs_count_for_nothing_but_their_number():
    lines = THREE + [line("gmlake", 1.0, 1.0, ok=False, err="crashed", status=-11)]
    (workload,) = results.workloads(lines)
    assert workload.median("gmlake", "step_ms") == 97.0
    text = table.details(workload)
    assert "2 of 3" in text and "gmlake: crashed" in text and "gmlake (full)" in text


def test_of_an_allocators_sessions_the_latest_counts():
    old = [line("native", 1.0, session="2025-12-31T00:00:00+00:00"), line("gmlake", 1.0, name="other")]
    toy, other = results.workloads(THREE[:1] + old)
    assert (toy.name, toy.median("native", "step_ms"), other.name) == ("toy", 100.0, "other")


def test_allocators_of_different_sessions_stand_side_by_side_without_a_ratio_of_times():
    (toy,) = results.workloads([line("native", 100.0, session="2025-12-31T00:00:00+00:00"), line("gmlake", 90.0)])
    assert (toy.median("native", "step_ms"), toy.median("gmlake", "step_ms")) == (100.0, 90.0)
    assert toy.ratio("step_ms", "gmlake", ["native"]) is None
    assert toy.ratio("step_ms", "gmlake", ["gmlake"]) is None


def test_a_file_with_something_else_in_it_is_an_error_that_names_the_line(tmp_path, capsys):
    path = tmp_path / "r.jsonl"
    path.write_text(json.dumps(THREE[0]) + "\n{}\n")
    with pytest.raises(SystemExit) as ended:
        compare.main(["--table", str(path)])
    assert ended.value.code == 2 and "line 2" in capsys.readouterr().err


@pytest.mark.parametrize(
    "bad, words",
    [
        (json.dumps({"kind": "run", "name": "toy"}), "no session, allocator"),
        (json.dumps({n: v for n, v in THREE[0].items() if n != "step_ms"}), "no step_ms"),
        (json.dumps(THREE[0] | {"reserved_mib": "x"}), "its reserved_mib can't be 'x'"),
        (json.dumps(THREE[0] | {"step_ms": 0, "ok": 1}), "its ok can't be 1, its step_ms can't be 0"),
        (json.dumps(THREE[0] | {"total_s": 0}), "its total_s can't be 0"),
        (json.dumps({"kind": "cap"} | THREE[0] | {"kind": "cap"}), "no smallest_cap_mib"),
        ("[" * 100_000, "no result"),
        (b"\xff\xfe\xfa", "no result"),
    ],
)
def test_an_incomplete_line_is_an_error_that_names_it_and_what_is_wrong(tmp_path, capsys, bad, words):
    path = tmp_path / "r.jsonl"
    path.write_bytes(json.dumps(THREE[0]).encode() + b"\n" + (bad.encode() if isinstance(bad, str) else bad))
    with pytest.raises(SystemExit) as ended:
        compare.main(["--table", str(path)])
    said = capsys.readouterr().err
    assert ended.value.code == 2 and f"{path}, line 2: " in said and words in said


def test_a_name_leaves_its_row_of_the_table_whole():
    text = table.markdown(results.workloads([each | {"name": "a | b\nc"} for each in THREE]))
    assert text.splitlines()[2].startswith(r"| a \| b c | 900 |")


def test_results_are_kept_and_the_table_is_made_of_them(tmp_path, capsys):
    path = tmp_path / "r.jsonl"
    command = says(tmp_path, ms_med=10, requested_mib=100, reserved_mib=110, peak_used_mib=120)
    given = ["--allocators", "native,expandable", "--runs", "2", "--name", "toy", "--json", str(path), "--"]
    assert compare.main(given + command) == 0
    assert "2 of 2" in capsys.readouterr().out
    kept = results.read(path)
    assert [each["allocator"] for each in kept] == ["native", "expandable", "expandable", "native"]
    assert {each["name"] for each in kept} == {"toy"} and kept[0]["command"] == command
    assert compare.main(["--table", str(path)]) == 0
    assert cells(capsys.readouterr().out, "toy")[2] == "110 (9.1%)"


def test_one_allocators_crash_does_not_stop_the_others(tmp_path, capsys):
    program = """
import os, sys
if "expandable" in os.environ["PYTORCH_CUDA_ALLOC_CONF"]: os.abort()
print('REC {"ms_med": 5}')
"""
    assert compare.main(["--allocators", "native,expandable", "--runs", "2", "--", *python(tmp_path, program)]) == 0
    said = capsys.readouterr()
    assert "0 of 2" in said.out and "2 of 2" in said.out and "exit status -6" in said.out


def test_if_nothing_completes_the_exit_status_says_so(tmp_path, capsys):
    command = python(tmp_path, "raise SystemExit(3)")
    assert compare.main(["--allocators", "native", "--runs", "1", "--", *command]) == 1
    assert "native: exit status 3" in capsys.readouterr().out


def test_caps_are_found_through_the_probe(with_torch, capsys):
    path = with_torch / "r.jsonl"
    given = ["--allocators", "native", "--runs", "1", "--caps", "--json", str(path), "--"]
    assert compare.main(given + python(with_torch, TRAINS)) == 0
    (found,) = [each for each in results.read(path) if each["kind"] == "cap"]
    assert 6 * 1024 <= found["smallest_cap_mib"] <= 6 * 1024 + 5.5 * 1024 * STEP + 1
    assert {ok for _, ok in found["tried"]} == {True, False}
    assert f"{found['smallest_cap_mib']:,.0f}" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--allocators", "native,jemalloc", "--", "true"], "jemalloc"),
        (["--runs", "0", "--", "true"], "1 or more"),
        (["--rans", "2", "--", "true"], "--rans"),
        ([], "--table"),
        (["--table", "nowhere.jsonl"], "nowhere.jsonl"),
        (["--table", "/"], "directory: '/'"),
        (["--chart", "x.pdf", "--", "true"], ".svg or a .png"),
        (["--chart", "/nowhere/a.svg", "--", "true"], "/nowhere/a.svg can't be written"),
        (["--allocators", "native,native", "--", "true"], "'native' is named twice"),
        (["--timeout", "nan", "--", "true"], "a number above 0"),
        (["--timeout", "inf", "--", "true"], "a number above 0"),
        (["--timeout", "0", "--", "true"], "a number above 0"),
        (["--timeout", "soon", "--", "true"], "a number above 0"),
        (["--json", "/nowhere/at/all.jsonl", "--allocators", "native", "--", "true"], "/nowhere/at/all.jsonl"),
    ],
)
def test_a_mistake_in_the_command_line_is_an_error_of_one_line(arguments, words, capsys):
    with pytest.raises(SystemExit) as ended:
        compare.main(arguments)
    assert ended.value.code == 2
    assert words in capsys.readouterr().err


def test_without_gmlake_the_error_comes_before_the_first_run(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    command = python(tmp_path, f"open({str(tmp_path / 'ran')!r}, 'w')")
    with pytest.raises(SystemExit) as ended:
        compare.main(["--", *command])
    assert ended.value.code == 2 and "gmlake is not installed" in capsys.readouterr().err
    assert not (tmp_path / "ran").exists()


def test_a_chart_shows_every_workload_with_its_figures(tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "chart.svg"
    lines = tmp_path / "r.jsonl"
    lines.write_text("".join(json.dumps(each) + "\n" for each in THREE + [line("native", name="$a_1$ and $b$")]))
    assert compare.main(["--table", str(lines), "--chart", str(path)]) == 0
    drawn = path.read_text()
    for words in ("toy", ">$a_1$ and $b$<", "requested", "2.1", "1.3", "0.960"):
        assert f"{words}" in drawn, words


def test_without_matplotlib_the_error_says_what_to_install(tmp_path, monkeypatch, capsys):
    lines = tmp_path / "r.jsonl"
    lines.write_text(json.dumps(THREE[0]) + "\n")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SystemExit), contextlib.redirect_stdout(open(os.devnull, "w")):
        compare.main(["--table", str(lines), "--chart", str(tmp_path / "chart.svg")])
    assert "pip install matplotlib" in capsys.readouterr().err


def test_a_table_of_nothing_is_an_error_that_says_so(tmp_path, capsys):
    (tmp_path / "empty.jsonl").touch()
    with pytest.raises(SystemExit) as ended:
        compare.main(["--table", str(tmp_path / "empty.jsonl")])
    assert ended.value.code == 2
    assert "empty.jsonl has no results" in capsys.readouterr().err


@pytest.mark.parametrize("after", [0, 1])
def test_what_had_run_is_told_when_the_comparison_is_interrupted(after, tmp_path, capsys, monkeypatch):
    runs = []

    def run(command, allocator, *rest):
        if len(runs) == after:
            raise KeyboardInterrupt
        runs.append(allocator)
        return real(command, allocator, *rest)

    real = compare.run
    monkeypatch.setattr(compare, "run", run)
    command = says(tmp_path, ms_med=2.5, reserved_mib=7)
    assert compare.main(["--allocators", "native,expandable", "--runs", "1", "--", *command]) == 130
    said = capsys.readouterr()
    assert said.err.endswith("interrupted\n") and "Traceback" not in said.err
    assert ("2.5" in said.out) == (after == 1)


def test_sessions_are_taken_together_by_their_runs(tmp_path, capsys):
    path = tmp_path / "results.jsonl"
    with path.open("w") as file:
        for session, name, allocator, steps in (
            ("1", "a", "native", [10.0, 10.0]),
            ("1", "a", "gmlake", [9.0, 9.0]),
            ("2", "a", "native", [20.0]),
            ("2", "a", "expandable", [40.0]),
            ("2", "a", "gmlake", [24.0]),
            ("3", "a", "gmlake", [1.0]),
            ("1", "b", "expandable", [5.0]),
            ("1", "b", "gmlake", [6.0]),
        ):
            for step in steps:
                line = {"kind": "run", "session": session, "name": name, "allocator": allocator, "ok": True, "err": ""}
                line |= dict.fromkeys(("wall_s", "peak_used_mib", "requested_mib", "reserved_mib", "retries"), 1)
                file.write(json.dumps(line | {"status": 0, "machine": {}, "step_ms": step}) + "\n")
    assert compare.main(["--sessions", str(path)]) == 0
    rows = capsys.readouterr().out.splitlines()[2:]
    assert rows == ["| a | 1.000 | – |", "| b | 1.200 | – |", "| the mean | 1.100 [1.100, 1.100] | – |"]
    path.write_text("")
    with pytest.raises(SystemExit):
        compare.main(["--sessions", str(path)])
    assert "no session has completed runs" in capsys.readouterr().err
