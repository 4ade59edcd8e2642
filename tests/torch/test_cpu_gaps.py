"""bench/pytorch_gaps.py on a trace made by hand: no PyTorch, no GPU."""

import gzip
import json
import pathlib
import sys

import pytest

sys.path.append(str(pathlib.Path(__file__).parents[2] / "bench"))

import pytorch_gaps  # noqa: E402

MIB = 1 << 20


def event(category, name, begin, duration, size=0):
    return {"ph": "X", "cat": category, "name": name, "ts": begin, "dur": duration, "args": {"bytes": size}}


# Two kernels side by side, a gap of a millisecond that a copy out fills by half, a kernel, a gap of two in which a copy
# to the device ends half a millisecond before the next, and one of 100 us that is no gap.
EVENTS = [
    event("kernel", "first", 1000, 400),
    event("kernel", "beside it", 1200, 800),
    event("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", 1500, 1000, 50 * MIB),
    event("kernel", "behind room", 3000, 1000),
    event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 3500, 2000, 100 * MIB),
    event("gpu_memset", "Memset (Device)", 6000, 500),
    event("kernel", "last", 6600, 400),
    event("cpu_op", "no work of the device's", 0, 100000),
    {"ph": "M", "name": "process_name"},
]


def written(folder, events, name="trace.json.gz"):
    path = folder / name
    text = json.dumps({"traceEvents": events})
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_gaps_are_told_with_what_was_copied_in_them(tmp_path, name):
    found = pytorch_gaps.gaps(pytorch_gaps.read(written(tmp_path, EVENTS, name)))
    assert found == [
        pytorch_gaps.Gap(1000, 2000, 500, 0, 1000, "behind room"),
        pytorch_gaps.Gap(3000, 5000, 0, 1500, 500, "Memset (Device)"),
    ]


def test_the_report_adds_up(tmp_path):
    text = pytorch_gaps.report(pytorch_gaps.read(written(tmp_path, EVENTS)), 1).splitlines()
    assert text[0] == "6.0 ms: kernels 2.9, none 3.1"
    assert text[1] == "to the host: 1 copies, 50 MiB in 1.0 ms, 52.4 GB/s"
    assert text[2] == "to the device: 1 copies, 100 MiB in 2.0 ms, 52.4 GB/s"
    assert text[3].startswith("2 gaps of 200 us or more: 3.0 ms, of which copying to the host 0.5, to the device 1.5")
    assert len(text) == 6 and text[5].endswith("Memset (Device)")


@pytest.mark.parametrize("content", ['{"traceEvents": []}', "{}", "[]", "no json"])
def test_what_is_no_trace_is_refused(tmp_path, content):
    path = tmp_path / "trace.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=str(path)):
        pytorch_gaps.read(path)
