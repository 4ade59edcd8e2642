#!/usr/bin/env python3
"""The time of torch.empty of a CUDA tensor and its free, from Python: python3 bench/pytorch_calls.py native|full|plain.

Prints a JSON line: for two sizes, the least and the median microseconds a pair of nine rounds of 30,000.
"""

import json
import sys
import time


def main(allocator: str) -> None:
    import torch

    if allocator != "native":
        import gmlake

        gmlake.enable(level=allocator)
    torch.zeros(1, device="cuda")
    line = {"benchmark": "empty", "allocator": allocator}
    for elements in (1000, 1 << 20):
        rounds = []
        for _ in range(9):
            began = time.perf_counter()
            for _ in range(30_000):
                torch.empty(elements, device="cuda")
            rounds.append((time.perf_counter() - began) / 30_000 * 1e6)
        rounds.sort()
        line[f"us_{elements}"] = {"least": round(rounds[0], 4), "median": round(rounds[4], 4)}
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
