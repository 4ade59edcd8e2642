"""Builds the adapter's shared libraries with CMake, from the checkout that this folder lies in.

    pip install setuptools wheel
    pip install --no-build-isolation ./examples/pytorch

Without build isolation the PyTorch that is installed is found, and the full adapter is compiled against it; with it, or
without PyTorch, only the plain one is built. Needs CMake, a C++20 compiler, Boost's headers and CUDA's.
"""

import pathlib
import re
import shutil
import subprocess
import sys

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

HERE = pathlib.Path(__file__).resolve().parent
CHECKOUT = HERE.parent.parent


def version() -> str:
    text = (CHECKOUT / "include/gmlake/version.hpp").read_text()
    return ".".join(re.search(rf"GMLAKE_VERSION_{part} (\d+)", text)[1] for part in ("MAJOR", "MINOR", "PATCH"))


class BinaryDistribution(Distribution):
    """Not pure Python: it holds libraries for this machine."""

    def has_ext_modules(self) -> bool:
        return True


class BuildLibraries(build_py):
    """The package's files, and in lib/ what CMake has built."""

    def run(self) -> None:
        super().run()
        build = HERE / "build" / "cmake"
        libraries = build / "python" / "gmlake" / "lib"
        # An earlier installation may have been for another PyTorch, or for none.
        for stale in (build / "CMakeCache.txt", *libraries.glob("*.so")):
            stale.unlink(missing_ok=True)
        generator = ["-G", "Ninja"] if shutil.which("ninja") else []
        subprocess.run(
            [
                "cmake",
                "-S",
                str(CHECKOUT),
                "-B",
                str(build),
                *generator,
                "-DCMAKE_BUILD_TYPE=Release",
                f"-DGMLAKE_PYTHON={sys.executable}",
                "-DGMLAKE_BUILD_TESTS=OFF",
                "-DGMLAKE_BUILD_BENCH=OFF",
                "-DGMLAKE_INSTALL=OFF",
            ],
            check=True,
        )
        subprocess.run(["cmake", "--build", str(build), "--parallel", "--target", "gmlake-torch"], check=True)
        to = pathlib.Path(self.build_lib) / "gmlake" / "lib"
        to.mkdir(parents=True, exist_ok=True)
        for library in libraries.glob("*.so"):
            shutil.copy2(library, to)


setup(version=version(), cmdclass={"build_py": BuildLibraries}, distclass=BinaryDistribution)
