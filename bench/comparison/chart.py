"""Results as a picture: memory at the peak beside what was requested, and step times. Needs matplotlib."""

from __future__ import annotations

import importlib.util
import os
import pathlib

from .results import Workload
from .run import ALLOCATORS

_COLOURS = {"native": "#8a8f98", "expandable": "#a8801a", "gmlake": "#1f6f8b"}
_NAMES = {"native": "native", "expandable": "expandable segments", "gmlake": "gmlake"}
_INK, _GIB = "#222222", 1024
_BAR = 0.25  # of the distance between two workloads


def check(path: pathlib.Path) -> None:
    """Raises ValueError where matplotlib is missing, and for a path that ends in neither .svg nor .png or can't be
    written."""
    if path.suffix not in (".svg", ".png"):
        raise ValueError(f"a chart is an .svg or a .png, not {path.name}")
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ValueError(f"the chart {path} can't be written there")
    if importlib.util.find_spec("matplotlib") is None:
        raise ValueError("a chart needs matplotlib: pip install matplotlib")


def draw(workloads: list[Workload], path: pathlib.Path) -> None:
    """Writes the chart, as SVG or PNG by the path's ending. Precondition: `check` does not object."""
    import matplotlib

    matplotlib.use("Agg")
    # Text stays text, also between dollar signs, and the same results give the same file.
    matplotlib.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "gmlake", "text.parse_math": False}
    matplotlib.rcParams |= {"font.size": 9, "text.color": _INK}
    from matplotlib import pyplot

    figure, (memory, steps) = pyplot.subplots(
        1, 2, sharey=True, figsize=(10, 1.4 + 0.9 * len(workloads)), width_ratios=(2, 1), layout="constrained"
    )
    for axes in (memory, steps):
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(left=False, colors=_INK)
    _draw_memory(memory, workloads)
    _draw_steps(steps, workloads)
    memory.set_yticks(range(len(workloads)), [workload.name for workload in workloads])
    memory.invert_yaxis()
    figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot.close(figure)


def _draw_memory(axes, workloads: list[Workload]) -> None:
    labelled = set()
    for row, workload in enumerate(workloads):
        for place, name in enumerate(ALLOCATORS):
            at = row + (place - 1) * _BAR
            used = workload.median(name, "peak_used_mib")
            if used is None:
                if name in workload.runs:
                    axes.text(0, at, f" {_NAMES[name]}: did not complete", va="center", color=_COLOURS[name])
                continue
            axes.barh(at, used / _GIB, height=0.9 * _BAR, color=_COLOURS[name])
            said = f" {used / _GIB:.1f}" if name in labelled else f" {used / _GIB:.1f}  {_NAMES[name]}"
            labelled.add(name)
            axes.text(used / _GIB, at, said, va="center", color=_COLOURS[name])
        requested = workload.requested()
        if requested is not None:
            axes.vlines(requested / _GIB, row - 1.6 * _BAR, row + 1.6 * _BAR, color=_INK, linewidth=1.2)
            if row == 0:
                axes.text(requested / _GIB, row - 1.7 * _BAR, "requested", ha="center", va="bottom")
    axes.set_xlabel("GiB of the device at the peak, as the driver sees it")
    axes.margins(x=0.18)
    axes.set_xlim(left=0)


def _draw_steps(axes, workloads: list[Workload]) -> None:
    axes.axvline(1, color=_INK, linewidth=0.8)
    for row, workload in enumerate(workloads):
        for place, other in enumerate(("native", "expandable")):
            ratio = workload.ratio("step_ms", "gmlake", [other])
            if ratio is None:
                continue
            at = row + (2 * place - 1) * _BAR
            if ratio.interval is not None:
                axes.hlines(at, *ratio.interval, color=_COLOURS[other])
            axes.plot(ratio.value, at, "o", markersize=5, color=_COLOURS[other])
            said = f"{ratio.value:.3f}" + (f" of {other}'s" if row == 0 else "")
            axes.annotate(
                said,
                (ratio.value, at),
                (0, 6),
                textcoords="offset points",
                ha="center",
                color=_COLOURS[other],
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0},
            )
    axes.set_xlabel("gmlake's step time divided by theirs,\nwith 95% intervals")
    axes.margins(x=0.35)
