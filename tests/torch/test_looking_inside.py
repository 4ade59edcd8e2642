"""What gmlake says of itself: figures, the map, a trace of the run, the report."""

import collections
import gzip
import html.parser
import pathlib
import re

import gmlake
import pytest
import torch
from fresh_process import run_gmlake, run_python
from on_device import GiB, MiB, figure, filled, reserved, runs_out, settle, stitched, wrong


def test_the_figures_follow_what_is_allocated():
    live, made = figure("live"), figure("allocations")
    tensor = filled(64 * MiB, 1)
    assert figure("live") == live + 64 * MiB
    assert figure("requested") <= figure("live") <= figure("reserved")
    assert figure("allocations") == made + 1
    del tensor
    assert figure("live") == live


@pytest.mark.full
def test_the_figures_agree_with_pytorchs():
    held = [filled(n * 3 * MiB, 1) for n in range(1, 10)]
    del held[::2]
    assert figure("live") == torch.cuda.memory_allocated()
    assert figure("reserved") == torch.cuda.memory_reserved()
    assert figure("requested") == torch.cuda.memory_stats()["requested_bytes.all.current"]


def test_figures_are_numbers_by_name():
    filled(MiB, 1)
    stats = gmlake.stats()
    assert stats == gmlake.stats(torch.cuda.current_device())
    assert all(isinstance(name, str) and isinstance(value, int) for name, value in stats.items())


def test_the_map_shows_every_chunk_block_and_stitch():
    tensor, between = stitched()
    found = gmlake.snapshot()
    assert sum(chunk["size"] for chunk in found["chunks"]) == reserved()
    stitches = [stitch for stitch in found["stitches"] if stitch["live"]]
    serving = stitches + [block for block in found["blocks"] if block["state"] == "live"]

    def holds(part, tensor):
        return part["address"] <= tensor.data_ptr() < part["address"] + part["size"]

    assert any(holds(stitch, tensor) for stitch in stitches)
    assert all(any(holds(part, t) for part in serving) for t in between)
    assert sum(part["requested"] for part in serving) == figure("requested")


def test_trimming_gives_free_memory_back():
    before = reserved()
    tensor = filled(256 * MiB, 1)
    del tensor
    assert reserved() > before
    gmlake.trim()
    assert reserved() <= before


def test_memory_of_one_handle_and_memory_of_its_own_chunks_lie_as_asked():
    with gmlake.one_handle():
        single = filled(100 * MiB, 1)
    with gmlake.own_chunks():
        own = filled(3 * MiB, 2)
    beside = filled(3 * MiB, 3)
    chunks = gmlake.snapshot()["chunks"]

    def holding(tensor):
        begin, end = tensor.data_ptr(), tensor.data_ptr() + tensor.numel()
        return [c for c in chunks if c["address"] < end and begin < c["address"] + c["size"]]

    assert len(holding(single)) == 1
    alone = {c["address"] for c in holding(own)}
    assert alone and not alone & {c["address"] for c in holding(beside) + holding(single)}
    assert [wrong(t, n).item() for n, t in ((1, single), (2, own), (3, beside))] == [0, 0, 0]


def parsed(path):
    """The events of a trace, after checking it against the format line by line."""
    text = gzip.decompress(pathlib.Path(path).read_bytes()).decode("ascii")
    assert text.endswith("\n")
    events, born, gone = [], 0, set()
    for line in text.splitlines():
        kind, *rest = line.split(",")
        if kind == "a":
            number, size, _stream = map(int, rest)
            assert number == born, "ids are dense from 0"
            born += 1
            events.append((kind, number, size))
        elif kind == "f":
            (number,) = map(int, rest)
            assert number < born and number not in gone, line
            gone.add(number)
            events.append((kind, number, 0))
        elif kind in "rwh":
            (number,) = map(int, rest)
            assert number < born and number not in gone, line
            events.append((kind, number, 0))
        elif kind == "o":
            events.append((kind, None, int(rest[0])))
        else:
            assert kind == "m" and len(rest) == 1 and rest[0], line
            events.append((kind, rest[0], 0))
    return events


def peak(events):
    sizes, now, most = {}, 0, 0
    for kind, number, size in events:
        if kind == "a":
            sizes[number] = size
            now += size
        elif kind == "f":
            now -= sizes[number]
        most = max(most, now)
    return most


def train(steps):
    model = torch.nn.Sequential(torch.nn.Linear(512, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 8)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for n in range(steps):
        with gmlake.step():
            loss = model(torch.randn(1000 * (n + 1), 512, device="cuda")).square().mean()
            gmlake.mark("backward")
            loss.backward()
            gmlake.mark("optimizer")
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)


def test_a_record_is_a_well_formed_trace_with_its_marks(tmp_path):
    path = tmp_path / "run.csv.gz"
    with gmlake.record(str(path)):
        train(5)
    events = parsed(path)
    marks = collections.Counter(label for kind, label, _ in events if kind == "m")
    assert marks == {"step": 5, "backward": 5, "optimizer": 5}
    assert sum(kind == "a" for kind, *_ in events) > 5 * 10
    order = [label for kind, label, _ in events if kind == "m"]
    assert order[:3] == ["step", "backward", "optimizer"]


def test_a_record_with_accesses_tells_what_operators_read_and_write_and_how_long_they_run(tmp_path):
    path = tmp_path / "run.csv.gz"
    with gmlake.record(str(path)), gmlake.accesses():
        a = torch.ones(3000, 3000, device="cuda")
        gmlake.frozen(a)
        b = a @ a
        b.t().add_(1)
    events = parsed(path)
    first, second = (number for kind, number, size in events if kind == "a" and size == 4 * 3000**2)
    assert [(kind, number) for kind, number, _ in events if kind in "rwh" and number in (first, second)] == [
        ("w", first),
        ("h", first),
        ("r", first),
        ("w", second),
        ("r", second),
        ("w", second),
    ]
    times = [size for kind, _, size in events if kind == "o"]
    assert len(times) == 3 and all(0 < time < 10**10 for time in times)
    assert torch.equal(b, torch.full_like(b, 3001))


def test_a_record_ends_when_stopped(tmp_path):
    path = tmp_path / "run.csv.gz"
    recording = gmlake.record(str(path))
    filled(12_345, 1)
    recording.stop()
    filled(54_321, 1)
    sizes = [size for kind, _, size in parsed(path) if kind == "a"]
    assert 12_345 in sizes and 54_321 not in sizes


def test_a_second_record_begins_anew(tmp_path):
    for n in range(2):
        with gmlake.record(str(tmp_path / f"{n}.csv.gz")):
            filled(10_000 + n, 1)
    for n in range(2):
        sizes = [size for kind, _, size in parsed(tmp_path / f"{n}.csv.gz") if kind == "a"]
        assert 10_000 + n in sizes and 10_001 - n not in sizes


RECORDS = """
import sys
import torch

folder = sys.argv[1]
torch.cuda.memory._record_memory_history(enabled="all", context=None)
with gmlake.record(folder + "/run.csv.gz"):
    model = torch.nn.Sequential(*(torch.nn.Linear(512, 512) for _ in range(6))).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for n in range(6):
        model(torch.randn(700 * (n + 1), 512, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
torch.cuda.memory._dump_snapshot(folder + "/snapshot.pickle")
hand_back(torch.cuda.memory_stats()["requested_bytes.all.peak"])
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A run from its first allocation on, recorded by gmlake and by PyTorch; and PyTorch's peak requested."""
    folder = tmp_path_factory.mktemp("recorded")
    return folder, run_gmlake(RECORDS, folder).value


@pytest.mark.full
def test_a_records_peak_is_pytorchs(recorded):
    folder, expected = recorded
    assert peak(parsed(folder / "run.csv.gz")) == expected > 0


@pytest.mark.full
def test_a_dumped_snapshot_converts_to_a_trace_with_the_same_peak(recorded):
    folder, expected = recorded
    run_python("-m", "gmlake.convert", folder / "snapshot.pickle", folder / "converted.csv.gz")
    events, direct = parsed(folder / "converted.csv.gz"), parsed(folder / "run.csv.gz")
    assert peak(events) == expected
    sizes = [[size for kind, _, size in each if kind == "a"] for each in (events, direct)]
    assert sizes[0] == sizes[1]


def test_the_report_is_one_page_that_needs_nothing_else(tmp_path):
    tensor, between = stitched()
    train(2)
    path = tmp_path / "page.html"
    gmlake.report(str(path))
    page = path.read_text()
    assert page.lower().lstrip().startswith("<!doctype html>")
    for word in ("reserved", "live", "stitch"):
        assert word in page.lower(), word
    assert "<svg" in page and "<table" in page
    assert re.findall(r"""(?:src|href)\s*=\s*["']https?:""", page) == []

    class reader(html.parser.HTMLParser):
        opened = collections.Counter()

        def handle_starttag(self, tag, attributes):
            self.opened[tag] += 1

        def handle_endtag(self, tag):
            self.opened[tag] -= 1

    check = reader()
    check.feed(page)
    assert {tag: n for tag, n in check.opened.items() if tag in ("table", "svg", "figure", "section") and n} == {}
    assert tensor.numel() and len(between) == 4


def test_a_limit_can_be_set_and_lifted():
    settle()
    gmlake.set_limit(reserved() + 256 * MiB)
    try:
        with runs_out():
            torch.empty(GiB, dtype=torch.uint8, device="cuda")
    finally:
        gmlake.set_limit("1024GiB")
    assert torch.empty(GiB, dtype=torch.uint8, device="cuda").numel() == GiB
