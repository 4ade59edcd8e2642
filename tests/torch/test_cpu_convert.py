"""PyTorch's memory snapshots become traces. No PyTorch, no GPU: an allocator in Python makes the snapshots."""

import gzip
import os
import pathlib
import pickle
import random
import subprocess
import sys

import pytest

# Behind an installed package, which comes first.
PACKAGE = pathlib.Path(__file__).parents[2] / "examples/pytorch"
sys.path.append(str(PACKAGE))

from gmlake import Error  # noqa: E402
from gmlake.convert import convert, main  # noqa: E402

SLOT = 1 << 20  # addresses lie this far apart, and no block is larger
SEED = int(os.environ.get("GMLAKE_TEST_SEED", "20"))


class Allocator:
    """Keeps a history and segments as PyTorch does."""

    def __init__(self):
        self.history, self.live, self.pending, self.clock = [], {}, set(), 0
        self.unused = [SLOT * n for n in range(1000, 0, -1)]

    def log(self, action, address, size, stream):
        self.clock += 10
        entry = {"action": action, "addr": address, "size": size, "stream": stream, "time_us": self.clock, "frames": []}
        self.history.append(entry)

    def alloc(self, size, stream=0):
        address = self.unused.pop()
        self.live[address] = size, stream
        self.log("alloc", address, size, stream)
        return address

    def request_free(self, address):
        self.pending.add(address)
        self.log("free_requested", address, *self.live[address])

    def free(self, address):
        if address not in self.pending:
            self.request_free(address)
        self.pending.discard(address)
        self.log("free_completed", address, *self.live.pop(address))
        self.unused.append(address)

    def live_bytes(self):
        return sum(size for size, _ in self.live.values())

    def snapshot(self, ring=None, **more):
        segments = [
            {
                "device": 0,
                "address": address,
                "total_size": SLOT,
                "stream": stream,
                "blocks": [
                    {
                        "address": address,
                        "size": size + 100,
                        "requested_size": size,
                        "state": "active_pending_free" if address in self.pending else "active_allocated",
                    },
                    {"address": address + size + 100, "size": SLOT - size - 100, "state": "inactive"},
                ],
            }
            for address, (size, stream) in self.live.items()
        ]
        history = self.history[-ring:] if ring else self.history
        return {"segments": segments, "device_traces": [list(history)]} | more


def random_run(events=2000):
    print(f"seed {SEED}")
    draw, allocator = random.Random(SEED), Allocator()
    for _ in range(events):
        if allocator.live and draw.random() < 0.48:
            allocator.free(draw.choice(sorted(allocator.live)))
        else:
            allocator.alloc(draw.randrange(1, SLOT // 2), draw.choice([0, 0, 0x55AA]))
    return allocator


def checked(text):
    """Checks a trace against its format line by line. Returns its events, and the sizes that live at its end."""
    assert text.endswith("\n")
    events, born, live, streams = [], 0, {}, set()
    for line in text.splitlines():
        kind, *fields = line.split(",")
        if kind == "a":
            number, size, stream = map(int, fields)
            assert number == born, "ids are dense from 0"
            assert stream <= len(streams), "streams are numbered from 0"
            streams.add(stream)
            live[number], born = size, born + 1
        elif kind == "f":
            del live[int(fields[0])]
        else:
            assert kind == "m" and fields[0]
        events.append((kind, *fields))
    return events, sorted(live.values())


def peak(text):
    now = most = 0
    sizes = {}
    for kind, *fields in checked(text)[0]:
        if kind == "a":
            sizes[fields[0]] = int(fields[1])
            now += int(fields[1])
        elif kind == "f":
            now -= sizes[fields[0]]
        most = max(most, now)
    return most


def counted(capsys, snapshot, folder):
    """What the command says of a snapshot."""
    path = folder / "snapshot.pickle"
    path.write_bytes(pickle.dumps(snapshot))
    assert main([str(path)]) == 0
    return capsys.readouterr().err


def test_a_whole_history_becomes_the_same_events():
    allocator = Allocator()
    first = allocator.alloc(100)
    allocator.alloc(200, stream=0x1234)
    allocator.free(first)
    allocator.alloc(300)
    assert convert(allocator.snapshot()) == "a,0,100,0\na,1,200,1\nf,0\na,2,300,0\n"


def test_a_random_history_becomes_a_well_formed_trace_that_ends_as_it_did():
    allocator = random_run()
    events, live = checked(convert(allocator.snapshot()))
    assert sum(kind == "a" for kind, *_ in events) == sum(e["action"] == "alloc" for e in allocator.history)
    assert live == sorted(size for size, _ in allocator.live.values())


def test_memory_waits_for_other_streams_until_its_free_is_completed():
    allocator = Allocator()
    block = allocator.alloc(100)
    allocator.request_free(block)
    allocator.alloc(200)
    allocator.free(block)
    assert convert(allocator.snapshot()) == "a,0,100,0\na,1,200,0\nf,0\n"


def test_a_block_that_still_waits_at_the_end_is_live():
    allocator = Allocator()
    allocator.request_free(allocator.alloc(100))
    assert convert(allocator.snapshot()) == "a,0,100,0\n"


@pytest.mark.parametrize("ring", [1, 7, 100, 1000])
def test_a_ring_that_overflowed_is_completed_from_its_frees_and_the_segments(ring):
    allocator = random_run()
    allocator.alloc(1)  # so that a ring of one has an event
    _, live = checked(convert(allocator.snapshot(ring)))
    assert live == sorted(size for size, _ in allocator.live.values())


def test_live_bytes_are_right_throughout_what_is_left_of_an_overflowed_ring():
    allocator = Allocator()
    freed_later, kept = allocator.alloc(1000), allocator.alloc(2000)
    ring_begins = len(allocator.history)
    allocator.alloc(50)
    allocator.free(freed_later)
    assert kept in allocator.live
    text = convert(allocator.snapshot(len(allocator.history) - ring_begins))
    assert text == "a,0,1000,0\na,1,2000,0\na,2,50,0\nf,0\n"
    assert peak(text) == 3050


def test_the_command_counts_what_it_took_from_where(tmp_path, capsys):
    allocator = Allocator()
    freed_later = allocator.alloc(1000)
    allocator.alloc(2000)
    allocator.alloc(3000)
    allocator.free(freed_later)
    said = counted(capsys, allocator.snapshot(3), tmp_path)
    assert "1 allocations, 1 frees" in said
    assert "1 blocks freed later on, 1 still live (taken from segments)" in said
    assert "unmatched: 0" in said
    assert "2 blocks, 5000 bytes" in said
    assert f"gmlake-replay --preset all {tmp_path}/snapshot.csv.gz" in said


def test_an_address_allocated_again_before_its_free_counts_as_freed_first(tmp_path, capsys):
    allocator = Allocator()
    first = allocator.alloc(100)
    allocator.unused.append(first)
    allocator.alloc(200)
    snapshot = allocator.snapshot()
    assert convert(snapshot) == "a,0,100,0\nf,0\na,1,200,0\n"
    assert "unmatched: 1" in counted(capsys, snapshot, tmp_path)


def test_a_free_that_comes_twice_is_left_out_and_counted(tmp_path, capsys):
    allocator = Allocator()
    allocator.free(allocator.alloc(100))
    allocator.history.append(allocator.history[-1])
    assert convert(allocator.snapshot()) == "a,0,100,0\nf,0\n"
    assert "unmatched: 1" in counted(capsys, allocator.snapshot(), tmp_path)


def test_where_history_and_segments_differ_the_segments_have_the_last_word(tmp_path, capsys):
    allocator = Allocator()
    gone, kept, other = allocator.alloc(100), allocator.alloc(200), allocator.alloc(300)
    del allocator.live[gone]
    allocator.live[other] = 350, 0
    allocator.history = [e for e in allocator.history if e["addr"] != kept]
    allocator.history += [{"action": "free_completed", "addr": kept, "size": 200, "stream": 0}]
    snapshot = allocator.snapshot()
    assert checked(convert(snapshot))[1] == [200, 350]
    assert "unmatched: 3" in counted(capsys, snapshot, tmp_path)


def test_old_snapshots_have_no_addresses_of_blocks_no_requested_sizes_and_no_times():
    old = {
        "segments": [
            {
                "device": 0,
                "address": 0x1000,
                "stream": 0,
                "blocks": [
                    {"size": 512, "state": "inactive"},
                    {"size": 1024, "state": "active_allocated"},
                    {"size": 2048, "state": "active_awaiting_free"},
                ],
            }
        ],
        "device_traces": [[{"action": "alloc", "addr": 0x1000 + 512, "size": 1024, "stream": 0}]],
    }
    assert convert(old) == "a,0,2048,0\na,1,1024,0\n"


def test_events_that_are_no_allocations_are_passed_over():
    allocator = Allocator()
    for action in ("segment_alloc", "segment_map", "segment_unmap", "segment_free", "snapshot"):
        allocator.log(action, 1 << 40, 1 << 21, 0)
    allocator.history.append({"action": "oom", "size": 1 << 50, "stream": 0, "device_free": 5})
    allocator.alloc(100)
    assert convert(allocator.snapshot()) == "a,0,100,0\n"


def test_only_the_device_that_is_asked_for_is_converted():
    allocator = Allocator()
    allocator.alloc(100)
    snapshot = allocator.snapshot()
    other = {"action": "alloc", "addr": 5, "size": 7, "stream": 0}
    snapshot["device_traces"].append([other])
    snapshot["segments"].append(
        {"device": 1, "address": 5, "stream": 0, "blocks": [{"address": 5, "size": 7, "state": "active_allocated"}]}
    )
    assert convert(snapshot) == "a,0,100,0\n"
    assert convert(snapshot, device=1) == "a,0,7,0\n"


def steps(*times, name="ProfilerStep#3"):
    return [{"name": name, "stage": stage, "device": 0, "time_us": t} for t in times for stage in ("START", "END")]


def test_the_profilers_steps_become_marks_where_they_began():
    allocator = Allocator()
    for size in (1, 2, 3):
        allocator.alloc(size)  # at 10, 20, 30
    notes = steps(5, 25) + steps(15, name="forward")
    text = convert(allocator.snapshot(external_annotations=notes))
    assert text == "m,step\na,0,1,0\na,1,2,0\nm,step\na,2,3,0\n"


def test_of_the_steps_before_the_ring_only_the_one_under_way_is_marked():
    allocator = Allocator()
    for size in (1, 2, 3):
        allocator.alloc(size)
    text = convert(allocator.snapshot(1, external_annotations=steps(1, 12, 22)))
    assert text.count("m,step") == 1


class Malicious:
    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


def test_a_pickle_that_would_run_something_is_refused_and_nothing_runs(tmp_path, capsys):
    victim, path = tmp_path / "written", tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps({"segments": [], "device_traces": [[Malicious(victim)]]}))
    assert main([str(path)]) == 2
    assert "open" in capsys.readouterr().err
    assert not victim.exists() and not (tmp_path / "snapshot.csv.gz").exists()


def test_an_error_without_a_text_is_told_by_its_name(tmp_path, capsys):
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(b"\x80\x04\x8e" + (1 << 62).to_bytes(8, "little") + b"too long")
    assert main([str(path)]) == 2
    assert capsys.readouterr().err.endswith("a damaged one: MemoryError\n")


@pytest.mark.parametrize("bytes_", [b"", b"hello\n", b"\x80\x04}", pickle.dumps({"segments": []})[:-5]])
def test_a_damaged_pickle_is_an_error_of_one_line(bytes_, tmp_path, capsys):
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(bytes_)
    assert main([str(path)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("gmlake: ") and said.count("\n") == 1 and str(path) in said


@pytest.mark.parametrize(
    "snapshot",
    [
        [1, 2],
        {"segments": []},
        {"segments": {}, "device_traces": [[]]},
        {"segments": [{}], "device_traces": [[{"action": "alloc", "addr": 1, "size": 2}]]},
        {"segments": [], "device_traces": [[{"addr": 1}]]},
        {"segments": [], "device_traces": [[{"action": "alloc", "addr": 1, "size": "2,0\nf,0"}]]},
        {"segments": [], "device_traces": [[{"action": "alloc", "addr": 1, "size": -2}]]},
        {"segments": [], "device_traces": [[{"action": "alloc", "addr": 1, "size": True}]]},
        {"segments": [], "device_traces": [[{"action": "alloc", "addr": 1, "size": 1 << 200}]]},
        {"segments": [], "device_traces": [[{"action": "alloc", "addr": 1, "size": 10**5000}]]},
        {"segments": [], "device_traces": [[{"action": "alloc", "addr": (1, 2), "size": 2}]]},
        {"segments": [], "device_traces": [[{"action": "alloc", "addr": 1, "size": 2, "stream": []}]]},
        {"segments": [{"address": 1, "blocks": [{"size": 2.5, "state": "active_allocated"}]}], "device_traces": [[]]},
    ],
)
def test_what_is_no_snapshot_is_an_error(snapshot, tmp_path, capsys):
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps(snapshot))
    assert main([str(path)]) == 2
    assert "no memory snapshot" in capsys.readouterr().err


# A list within lists, and a tuple of twice a tuple of twice a tuple.
DEEP = b"]" + b"]" * 100_000 + b"a" * 100_000
SHARED = b")" + b"2\x86" * 60


@pytest.mark.parametrize("size", [DEEP, SHARED], ids=["deep", "shared"])
def test_what_can_not_be_printed_is_not_printed(size, tmp_path, capsys):
    event = b"}(U\x06actionU\x05allocU\x04addrK\x01U\x04size" + size + b"u"
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(b"\x80\x02}(U\x08segments]U\x0ddevice_traces]]" + event + b"aau.")
    assert main([str(path)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("gmlake: ") and said.count("\n") == 1 and "'size' is no number" in said


def test_the_snapshot_is_not_overwritten(tmp_path, capsys, monkeypatch):
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(before := pickle.dumps(Allocator().snapshot()))
    monkeypatch.chdir(tmp_path)
    for output in (str(path), "./snapshot.pickle"):
        assert main([str(path), output]) == 2
        assert "would take the place of the snapshot" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_a_snapshot_without_history_says_what_was_not_on():
    allocator = Allocator()
    allocator.alloc(100)
    with pytest.raises(Error, match="_record_memory_history was not on"):
        convert(allocator.snapshot() | {"device_traces": [[], []]})
    with pytest.raises(Error, match="_record_memory_history was not on"):
        convert(allocator.snapshot() | {"device_traces": []})


@pytest.mark.parametrize("action", ["segment_alloc", "free_requested"])
def test_events_that_are_no_allocations_and_no_frees_are_no_history(action):
    allocator = Allocator()
    allocator.log(action, 1 << 40, 1 << 21, 0)
    with pytest.raises(Error, match="no allocations and frees of device 0: none of its 1 events is one$"):
        convert(allocator.snapshot())
    allocator.history = [{"action": "alloc", "addr": 5, "size": 7, "stream": 0}]
    rings = [[{"action": action, "addr": 5, "size": 7, "stream": 0}], *allocator.snapshot()["device_traces"]]
    with pytest.raises(Error, match="with a history: device 1$"):
        convert(allocator.snapshot() | {"device_traces": rings})


def test_a_device_that_is_not_there_is_an_error_that_names_those_with_a_history():
    allocator = Allocator()
    allocator.alloc(100)
    with pytest.raises(Error, match="no device 3 .*with a history: device 0"):
        convert(allocator.snapshot(), device=3)


@pytest.mark.parametrize("how", [["run.csv.gz"], ["-o", "run.csv.gz"]])
def test_the_command_writes_where_it_is_told_and_runs_without_pytorch(how, tmp_path):
    allocator = random_run(300)
    (tmp_path / "s.pickle").write_bytes(pickle.dumps(allocator.snapshot()))
    env = os.environ | {"PYTHONPATH": os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(PACKAGE)])}
    forbidding = (
        "import runpy, sys; sys.modules['torch'] = None; runpy.run_module('gmlake.convert', run_name='__main__')"
    )
    subprocess.run([sys.executable, "-c", forbidding, "s.pickle", *how], cwd=tmp_path, env=env, check=True)
    assert gzip.decompress((tmp_path / "run.csv.gz").read_bytes()).decode() == convert(allocator.snapshot())


def test_a_trace_that_cannot_be_written_is_an_error(tmp_path, capsys):
    allocator = Allocator()
    allocator.alloc(1)
    (tmp_path / "s.pickle").write_bytes(pickle.dumps(allocator.snapshot()))
    assert main([str(tmp_path / "s.pickle"), "-o", str(tmp_path / "missing" / "run.csv.gz")]) == 2
    assert "can't write" in capsys.readouterr().err
