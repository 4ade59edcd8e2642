"""One run of a command under one allocator, measured by the probe."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from typing import IO, Any

PROBE = pathlib.Path(__file__).parent / "probe"
CHECKOUT = pathlib.Path(__file__).parents[2]
ALLOCATORS = ("native", "expandable", "gmlake")

_MEMORY = ("peak_used_mib", "requested_mib", "reserved_mib", "retries")
_NEVER_0 = ("ms_med", "s_total", "steps", "step_ms", "total_s")  # as others are divided by them
_WARM_UP_STEPS = 2  # while libraries load and choose their algorithms
_SECONDS_TO_END = 10  # for a run that was told to end, and for what a command leaves behind
_ERROR_CHARACTERS = 400


@dataclasses.dataclass
class Run:
    """What one run was like. Figures that nobody told are None; memory is in MiB, the greatest of all ranks."""

    allocator: str
    ok: bool = False
    status: int | None = None  # None after a timeout
    wall_s: float = 0.0
    step_ms: float | None = None  # the median step, and of ranks the median
    total_s: float | None = None  # all steps, the first ones included; of ranks the longest
    steps: int | None = None
    peak_used_mib: float | None = None  # as the driver sees it, less what was in use when CUDA began
    requested_mib: float | None = None
    reserved_mib: float | None = None
    retries: int | None = None
    cap_mib: float | None = None
    err: str = ""
    level: str | None = None  # gmlake's
    gmlake: dict[str, int] | None = None  # the figures of the rank that reserved most
    machine: dict[str, str] = dataclasses.field(default_factory=dict)


def environment(allocator: str) -> dict[str, str]:
    """This process's environment, with the allocator chosen in it. Raises ValueError where gmlake can't be."""
    env = {name: value for name, value in os.environ.items() if name not in _CHOOSING}
    if allocator == "expandable":
        env["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
    elif allocator == "gmlake":
        package = _package()
        env["GMLAKE_AUTOSTART"] = "1"
        env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(package / "child"), env.get("PYTHONPATH")]))
    else:
        env["PYTORCH_CUDA_ALLOC_CONF"] = ""
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(PROBE), env.get("PYTHONPATH")]))
    return env


_CHOOSING = {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "GMLAKE_AUTOSTART"}


def _package() -> pathlib.Path:
    found = importlib.util.find_spec("gmlake")
    if found is None or not found.submodule_search_locations:
        raise ValueError(
            f"gmlake is not installed for {sys.executable}: "
            f"pip install setuptools wheel; pip install --no-build-isolation {CHECKOUT}/examples/pytorch"
        )
    package = pathlib.Path(found.submodule_search_locations[0])
    if not list((package / "lib").glob("libgmlake_torch_*.so")):
        raise ValueError(f"gmlake's libraries are not built: there is none in {package}/lib")
    return package


def run(command: list[str], allocator: str, cap_mib: float | None = None, timeout_s: float | None = None) -> Run:
    """Runs the command to its end. A crash or a timeout is told in what is returned; nothing is raised for it. What the
    command has started and left behind is ended soon after it, but for what has left its session."""
    done = Run(allocator, cap_mib=cap_mib)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        env = environment(allocator) | {"COMPARE_PROBE": folder}
        if cap_mib is not None:
            env["COMPARE_CAP_MIB"] = str(cap_mib)
        began = time.perf_counter()
        try:
            child = subprocess.Popen(
                command,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            done.err = f"{command[0]}: {error.strerror}"
            return done
        # A thread reads, as whoever holds the pipe may outlive the command: nothing may wait for its end.
        pieces: list[bytes] = []
        reader = threading.Thread(target=_read, args=(child.stdout, pieces), daemon=True)
        reader.start()
        try:
            done.status = child.wait(timeout_s)
            done.wall_s = time.perf_counter() - began
            reader.join(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            done.wall_s = time.perf_counter() - began
            done.err = f"took longer than {timeout_s:g} s"
        finally:
            if child.returncode is None or reader.is_alive():
                _end(child, reader)
        probes = _probes(pathlib.Path(folder))
    output = b"".join(pieces).decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n")
    take(done, probes, own_records(output))
    done.ok = done.status == 0 and done.ok
    if not done.ok and not done.err:
        done.err = _last_words(output)
    return done


def _read(pipe: IO[bytes], pieces: list[bytes]) -> None:
    with pipe:
        while piece := os.read(pipe.fileno(), 1 << 16):
            pieces.append(piece)


def _end(child: subprocess.Popen[bytes], reader: threading.Thread) -> None:
    """Ends a run and all of its session."""
    with contextlib.suppress(ProcessLookupError):
        try:
            os.killpg(child.pid, signal.SIGTERM)
            reader.join(_SECONDS_TO_END)
        finally:
            os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _probes(folder: pathlib.Path) -> list[dict[str, Any]]:
    """What the probe has left, but for what can't be read: a process may have been killed, or the disk be full."""
    found = []
    for file in folder.glob("*.json"):
        with contextlib.suppress(OSError, ValueError):
            found.append(json.loads(file.read_bytes()))
    return [each for each in found if isinstance(each, dict)]


def own_records(output: str) -> list[dict[str, Any]]:
    """What the command said of itself, in lines `REC {json}`; of several ranks there are several."""
    found = []
    for text in re.findall(r"\bREC (\{.*\})\s*$", output, re.MULTILINE):
        try:
            found.append(json.loads(text))
        except (ValueError, RecursionError):
            continue
    return found


def take(done: Run, probes: list[dict[str, Any]], records: list[dict[str, Any]]) -> None:
    """Fills in the figures: the command's own where it gives them and they make sense, the probe's otherwise."""
    done.ok = all(record.get("ok") is not False for record in records)
    said = [record.get("err") for record in records]
    done.err = done.err or next((err for err in said if err and isinstance(err, str)), "")
    for name in _MEMORY:
        values = _heard(records, name) or _heard(probes, name)
        setattr(done, name, max(values) if values else None)
    own_steps = _heard(records, "ms_med")
    timed = [probe["steps_ms"] for probe in probes if probe.get("steps_ms")]
    medians = own_steps or [statistics.median(steady(steps)) for steps in timed]
    done.step_ms = statistics.median(medians) if medians else None
    totals = _heard(records, "s_total") or [sum(steps) / 1e3 for steps in timed]
    done.total_s = max(totals) if totals else None
    counts = _heard(records, "steps") or [len(steps) + 1 for steps in timed]
    done.steps = max(counts) if counts else None
    if probes:
        fullest = max(probes, key=lambda probe: probe.get("reserved_mib", 0))
        done.level, done.gmlake = fullest.get("level"), fullest.get("gmlake")
        done.machine = {name: fullest[name] for name in ("gpu", "torch") if name in fullest}


def steady(steps: list[float]) -> list[float]:
    """The steps without the first few, unless hardly any would be left."""
    return steps[_WARM_UP_STEPS:] if len(steps) > 2 * _WARM_UP_STEPS else steps


def _heard(from_: list[dict[str, Any]], name: str) -> list[Any]:
    return [each[name] for each in from_ if is_figure(name, each.get(name))]


def is_figure(name: str, value: Any) -> bool:
    """Whether a value can be reckoned with as the field of that name: a number, and nothing endless."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e18:
        return False
    return value > 0 or name not in _NEVER_0


def _last_words(output: str) -> str:
    lines = [line for line in output.splitlines() if line.strip()]
    telling = [line for line in lines if re.search(r"Error|error:|out of memory", line)]
    return (telling or lines or [""])[-1].strip()[:_ERROR_CHARACTERS]
