"""Runs scripts in processes of their own, under PyTorch's native allocator or under gmlake.

A process chooses its allocator once, before CUDA is touched. So whatever compares allocators, forks, dies, or looks at
how a process exits, needs a process of its own. Scripts hand back a value by printing "VALUE" and JSON.
"""

import concurrent.futures
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap

SECONDS = 300  # a hung script fails its test instead of the whole run

# Variables that choose or configure an allocator; the last five are GMLake's own. Beside them all that begin GMLAKE.
CHOOSING = {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"}
CHOOSING |= {"vmmDefragment", "autoGC", "fragLimit", "reuseLimit", "defragLevel"}

NATIVE = """\
import torch
assert torch.cuda.memory.get_allocator_backend() == "native"
"""

GMLAKE = """\
import gmlake
gmlake.enable({settings})
"""

PROLOGUE = """\
import json
def hand_back(value):
    print("VALUE " + json.dumps(value), flush=True)
"""


@dataclasses.dataclass
class outcome:
    code: int
    out: str
    err: str

    @property
    def value(self):
        lines = [line for line in self.out.splitlines() if line.startswith("VALUE ")]
        assert lines, f"no value was handed back\n{self.out}\n{self.err}"
        return json.loads(lines[-1].removeprefix("VALUE "))


def clean_environment(more):
    """This process's without what chooses or configures an allocator, and with `more`."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("GMLAKE") and name not in CHOOSING}
    here = str(pathlib.Path(__file__).parent)
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [here, env.get("PYTHONPATH")]))
    env["PYTHONWARNINGS"] = "ignore"  # what other packages warn of at import is not looked at here
    env.update(more)
    return env


def run_python(*arguments, env=None, expect=0, seconds=SECONDS):
    """`python *arguments`. `expect`: the exit status that it must end with, None for any."""
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        env=clean_environment(env or {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=seconds,
    )
    result = outcome(done.returncode, done.stdout, done.stderr)
    if expect is not None:
        assert result.code == expect, f"exit status {result.code}\n{result.out[-4000:]}\n{result.err[-8000:]}"
    return result


def written(folder, prelude, script):
    path = pathlib.Path(folder) / "script.py"
    path.write_text(prelude + PROLOGUE + textwrap.dedent(script))
    return path


def run_native(script, *arguments, **how):
    """The script under PyTorch's native allocator."""
    with tempfile.TemporaryDirectory() as folder:
        return run_python(written(folder, NATIVE, script), *arguments, **how)


def run_gmlake(script, *arguments, level=None, launcher=(), env=None, expect=0, seconds=SECONDS, **settings):
    """The script with gmlake switched on first: at this process's level where none is given, with keyword settings.

    Processes that the script spawns switch it on too, as the script is their main module. `launcher`: arguments before
    the script, such as ("-m", "torch.distributed.run").
    """
    if level is None:
        import gmlake

        level = gmlake.enabled() or "auto"
    keywords = ", ".join(f"{name}={value!r}" for name, value in {"level": level, **settings}.items())
    with tempfile.TemporaryDirectory() as folder:
        path = written(folder, GMLAKE.format(settings=keywords), script)
        return run_python(*launcher, path, *arguments, env=env, expect=expect, seconds=seconds)


def together(runs, at_once=4):
    """Starts what `runs` names, a few at a time, as most of a short script's time goes into imports. Name to future."""
    workers = concurrent.futures.ThreadPoolExecutor(at_once)
    futures = {name: workers.submit(run) for name, run in runs.items()}
    workers.shutdown(wait=False)
    return futures
