"""Switches gmlake on for the whole test process, before CUDA is touched, and says aloud why a suite can't run.

GMLAKE_LEVEL (auto, full or plain; auto where unset) chooses the level. Suites named test_cpu_* need no GPU and are
left alone; every other one is skipped, with the reason, where PyTorch, a GPU or gmlake's library is missing. A library
that is there and can't be switched on is a failure, not a skip.
"""

import functools
import os
import pathlib

import pytest

# Taken out of the environment, so that processes which the tests start choose for themselves.
LEVEL = os.environ.pop("GMLAKE_LEVEL", "auto")


@functools.cache
def missing():
    """Why the GPU suites can't run here, or "". Switches gmlake on where they can."""
    try:
        import torch
    except Exception as error:
        return f"PyTorch can't be imported: {error}"
    if not torch.cuda.is_available():
        return "PyTorch sees no CUDA GPU"
    try:
        import gmlake
    except ImportError as error:
        return f"the Python package gmlake can't be imported: {error}"
    libraries = pathlib.Path(gmlake.__file__).parent / "lib"
    if not list(libraries.glob("libgmlake_torch_*.so")):
        return f"no libgmlake_torch_*.so in {libraries}: pip install --no-build-isolation ./examples/pytorch"
    gmlake.enable(level=LEVEL)
    return ""


def needs_gpu(path):
    return not path.name.startswith("test_cpu_")


class Unable(pytest.Item):
    """Stands in for a suite that can't be collected."""

    def runtest(self):
        pytest.skip(missing())

    def reportinfo(self):
        return self.path, 0, self.name


class UnableSuite(pytest.File):
    def collect(self):
        yield Unable.from_parent(self, name=self.path.stem)


def pytest_configure(config):
    for marker in (
        "full: needs the level full",
        "gpus(n): needs n GPUs",
        "slow: takes more than about ten seconds",
    ):
        config.addinivalue_line("markers", marker)


def pytest_pycollect_makemodule(module_path, parent):
    if needs_gpu(module_path) and missing():
        return UnableSuite.from_parent(parent, path=module_path)
    return None


def pytest_collection_modifyitems(items):
    for item in items:
        if isinstance(item, Unable) or not needs_gpu(item.path):
            continue
        import gmlake
        import torch

        if item.get_closest_marker("full") and gmlake.enabled() != "full":
            item.add_marker(pytest.mark.skip(reason=f"needs the level full; this process runs {gmlake.enabled()}"))
        gpus = item.get_closest_marker("gpus")
        if gpus and torch.cuda.device_count() < gpus.args[0]:
            item.add_marker(
                pytest.mark.skip(reason=f"needs {gpus.args[0]} GPUs; PyTorch sees {torch.cuda.device_count()}")
            )


def pytest_terminal_summary(terminalreporter):
    reports = terminalreporter.stats.get("skipped", [])
    reasons = {report.longrepr[2] for report in reports if isinstance(report.longrepr, tuple)}
    for reason in sorted(reasons):
        terminalreporter.write_line(reason)


@pytest.fixture(autouse=True)
def settled(request):
    """Each test begins with nothing cached; one that kills the CUDA context ends the run, which could only fail."""
    if not needs_gpu(request.path):
        yield
        return
    from on_device import settle

    settle()
    yield
    try:
        settle()
    except RuntimeError as error:
        pytest.exit(f"after {request.node.nodeid} the CUDA context is unusable: {error}", returncode=3)
