"""The smallest cap on memory that a run survives, by bisection."""

from __future__ import annotations

import math
from collections.abc import Callable

STEP = 0.005  # of what the run requests at its peak


def smallest_cap(requested_mib: float, peak_mib: float, survives: Callable[[float], bool]) -> float | None:
    """The smallest cap in MiB, in steps of 0.5% of what is requested at the peak, that `survives` holds of; None if it
    does not hold even of the peak reserved without a cap. Nothing below what is requested is tried, and a run that
    survives a cap is taken to survive every larger one. About log2 of the number of steps calls."""
    caps = [requested_mib * (1 + STEP * n) for n in range(1 + max(0, math.ceil((peak_mib / requested_mib - 1) / STEP)))]
    low, high = 0, len(caps)
    while low < high:
        middle = (low + high) // 2
        if survives(caps[middle]):
            high = middle
        else:
            low = middle + 1
    return caps[low] if low < len(caps) else None
