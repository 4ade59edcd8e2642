"""What a workload's steps take from the driver once gmlake has planned them: per step its time, the driver's calls, and
the share of requests that a plan served.

    python bench/pytorch_plans.py NAME [PLAN]

PLAN: auto (the default), off, or a file of plans; `save:FILE` plans by itself and saves what it has made at the end.
Prints one JSON object: ms, calls, requests and placed by step, and the figures of `gmlake.stats()` after the last.
"""

from __future__ import annotations

import json
import statistics
import sys

import gmlake
import torch
import workloads

FIGURES = ("driver_calls", "allocations", "plan_placed", "stitches_made", "stitch_hits")


class WatchedClock(workloads.Clock):
    """Takes gmlake's figures at each step's beginning and end too."""

    seen: list[dict[str, int]] = []

    def __enter__(self) -> None:
        super().__enter__()
        self.before = gmlake.stats()

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        now = gmlake.stats()
        self.seen.append({name: now[name] - self.before[name] for name in FIGURES})


def main() -> None:
    name, plan = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "auto"
    gmlake.enable(plan="auto" if plan.startswith("save:") else plan)
    torch.manual_seed(0)
    workloads.Clock = WatchedClock
    clock = workloads.WORKLOADS[name]()
    seen, after = WatchedClock.seen, gmlake.stats()
    if plan.startswith("save:"):
        gmlake.save_plans(plan.removeprefix("save:"))
    steady = seen[4:]
    print(
        json.dumps(
            {
                "name": name,
                "plan": plan,
                "ms_median": round(1e3 * statistics.median(clock.ts[4:] or clock.ts), 2),
                "ms": [round(1e3 * t, 1) for t in clock.ts],
                "calls": [s["driver_calls"] for s in seen],
                "requests": [s["allocations"] for s in seen],
                "placed": [s["plan_placed"] for s in seen],
                "steady_calls": sum(s["driver_calls"] for s in steady),
                "steady_stitches": sum(s["stitches_made"] + s["stitch_hits"] for s in steady),
                "steady_share": round(
                    sum(s["plan_placed"] for s in steady) / max(1, sum(s["allocations"] for s in steady)), 4
                ),
                "reserved_over_requested": round(after["reserved_peak"] / after["requested_peak"], 4),
                "figures": {
                    k: v for k, v in after.items() if k.startswith("plan") or k in ("retries", "out_of_memory")
                },
            }
        ),
        flush=True,
    )


if __name__ == "__main__":
    main()
