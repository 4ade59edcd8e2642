"""The adapter's library itself, where there is no GPU: what it answers to who never gets memory from it."""

import ctypes
import importlib.util
import pathlib

import pytest


@pytest.fixture
def plain():
    found = importlib.util.find_spec("gmlake")
    folder = pathlib.Path(found.submodule_search_locations[0]) / "lib" if found else None
    path = folder / "libgmlake_torch_plain.so" if folder else None
    if path is None or not path.exists():
        pytest.skip("libgmlake_torch_plain.so is not built")
    library = ctypes.CDLL(str(path))
    library.gmlake_report.restype = ctypes.c_char_p
    return library


def test_a_report_of_a_program_that_allocated_nothing_says_so(plain, tmp_path):
    path = tmp_path / "page.html"
    assert plain.gmlake_report(str(path).encode()) is None
    page = path.read_text()
    assert "<title>gmlake</title>" in page and "GPU memory that a program needs" in page
    assert "No memory has been allocated on any device." in page
    assert "Replayed" not in page and "<table" not in page
    assert b"can't write" in plain.gmlake_report(str(tmp_path / "nowhere" / "page.html").encode())


def test_streams_that_use_memory_of_others_are_no_error(plain):
    others = ctypes.create_string_buffer(64)
    record = plain.gmlake_torch_record_stream
    record.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    record.restype = None
    for pointer in (ctypes.addressof(others), None):
        record(pointer, None)
