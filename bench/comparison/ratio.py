"""Medians, ratios of medians, and how sure they are."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable
from typing import NamedTuple

RESAMPLES = 2000
CONFIDENCE = 0.95


class Ratio(NamedTuple):
    """A ratio of medians; the interval is None where a side has only one run."""

    value: float
    interval: tuple[float, float] | None

    def __str__(self) -> str:
        if self.interval is None:
            return f"{self.value:.3f}"
        return f"{self.value:.3f} [{self.interval[0]:.3f}, {self.interval[1]:.3f}]"


def ratio_to_best(of: list[float], to: list[list[float]], seed: int = 1) -> Ratio | None:
    """The median of one allocator's runs, divided by the least of others' medians, with its bootstrap interval (Efron
    and Tibshirani, An Introduction to the Bootstrap, 13.3): runs are drawn again with replacement, allocator by
    allocator, and the middle 95% of the ratios kept. None where a side has no runs."""
    to = [runs for runs in to if runs]
    if not of or not to:
        return None

    def ratio(of: list[float], to: list[list[float]]) -> float:
        return statistics.median(of) / min(statistics.median(runs) for runs in to)

    value = ratio(of, to)
    if len(of) < 2 or any(len(runs) < 2 for runs in to):
        return Ratio(value, None)
    draw = random.Random(seed)
    again = sorted(
        ratio(draw.choices(of, k=len(of)), [draw.choices(runs, k=len(runs)) for runs in to]) for _ in range(RESAMPLES)
    )
    outside = round((1 - CONFIDENCE) / 2 * RESAMPLES)
    return Ratio(value, (again[outside], again[-1 - outside]))


def over_sessions(workloads: list[list[tuple[list[float], list[list[float]]]]], seed: int = 1) -> list[Ratio]:
    """Of each workload the mean of its sessions' ratios to the best, as in `ratio_to_best`, weighted by the runs that each
    has `of` the allocator; and last the mean of these, with its bootstrap interval: runs are drawn again session by session.
    A session is a pair `of`, `to`; each workload has one, with runs on both sides."""

    def means(pick: Callable[[list[float]], list[float]]) -> list[float]:
        found = []
        for sessions in workloads:
            ratios = [
                statistics.median(pick(of)) / min(statistics.median(pick(runs)) for runs in to) for of, to in sessions
            ]
            weights = [len(of) for of, _ in sessions]
            found.append(sum(w * r for w, r in zip(weights, ratios)) / sum(weights))
        return found

    draw = random.Random(seed)
    again = sorted(statistics.mean(means(lambda runs: draw.choices(runs, k=len(runs)))) for _ in range(RESAMPLES))
    outside = round((1 - CONFIDENCE) / 2 * RESAMPLES)
    values = means(lambda runs: runs)
    mean = Ratio(statistics.mean(values), (again[outside], again[-1 - outside]))
    return [Ratio(value, None) for value in values] + [mean]


def in_turn(allocators: list[str], runs: int) -> list[str]:
    """The order of runs: forwards, backwards, forwards …, so that a steady drift of the machine cancels out."""
    return [name for n in range(runs) for name in (allocators if n % 2 == 0 else reversed(allocators))]
