"""One process's memory and step times, measured in it. Nothing here begins to use CUDA; the program does."""

from __future__ import annotations

import atexit
import json
import os
import pathlib
import sys
import threading
import time
from typing import Any

SECONDS_BETWEEN_SAMPLES = 0.003
MiB = 1 << 20


class Measuring:
    """The driver's figure is sampled on one device: LOCAL_RANK's, or else the one current when CUDA is first used. It
    counts what other processes do on that device too."""

    def __init__(self, folder: str, cap_mib: str | None):
        self._folder = pathlib.Path(folder)
        self._cap = None if cap_mib is None else float(cap_mib) * MiB
        self._process = os.getpid()
        self._began = time.perf_counter()
        self._device: int | None = None
        self._free_at_first = self._least_free = 0
        self._peaks: dict[str, int] = {}  # before the program reset them
        self._steps: list[float] = []  # when they ended
        self._optimizer: int | None = None
        self._done = threading.Event()
        self._sampler: threading.Thread

    def begin(self) -> None:
        import torch
        from torch.optim.optimizer import register_optimizer_step_post_hook

        # What all of PyTorch's functions that reset peaks call.
        if reset := getattr(getattr(torch, "_C", None), "_cuda_resetPeakMemoryStats", None):
            torch._C._cuda_resetPeakMemoryStats = lambda device: (self._note_peaks(), reset(device))[1]
        # Called as soon as CUDA is there, before the program allocates from it.
        torch.cuda._lazy_call(self._cuda_begins)
        register_optimizer_step_post_hook(self._step_ends)
        atexit.register(self._end)

    def _cuda_begins(self) -> None:
        import torch

        if os.getpid() != self._process:
            return
        local = int(os.environ.get("LOCAL_RANK", "-1"))
        self._device = local if 0 <= local < torch.cuda.device_count() else torch.cuda.current_device()
        self._free_at_first, total = torch.cuda.mem_get_info(self._device)
        self._least_free = self._free_at_first
        if self._cap is not None:
            torch.cuda.set_per_process_memory_fraction(min(1.0, self._cap / total), self._device)
        self._sampler = threading.Thread(target=self._sample, daemon=True)
        self._sampler.start()

    def _note_peaks(self) -> dict[str, int]:
        """The highest so far, whatever the program has reset."""
        import torch

        if self._device is not None and os.getpid() == self._process:
            stats = torch.cuda.memory_stats(self._device)
            for what in ("requested_bytes", "reserved_bytes"):
                self._peaks[what] = max(self._peaks.get(what, 0), stats.get(f"{what}.all.peak", 0))
        return self._peaks

    def _sample(self) -> None:
        import torch

        while not self._done.wait(SECONDS_BETWEEN_SAMPLES):
            try:
                self._least_free = min(self._least_free, torch.cuda.mem_get_info(self._device)[0])
            except RuntimeError:  # the program has broken its CUDA context, and will say so itself
                return

    def _step_ends(self, optimizer: Any, *_: Any) -> None:
        # Of several optimizers the first one's steps are the program's.
        if self._optimizer is None:
            self._optimizer = id(optimizer)
        if self._optimizer == id(optimizer):
            self._steps.append(time.perf_counter())

    def _end(self) -> None:
        if os.getpid() != self._process or self._device is None:
            return
        self._done.set()
        self._sampler.join()  # it must not be in a call of PyTorch's when the interpreter ends
        found = {
            "rank": int(os.environ.get("RANK", "0")),
            "seconds": time.perf_counter() - self._began,
            "steps_ms": [1e3 * (after - before) for before, after in zip(self._steps, self._steps[1:])],
            "peak_used_mib": (self._free_at_first - self._least_free) / MiB,
        }
        try:
            found |= self._machine() | self._allocator_figures()
        except RuntimeError as error:  # a broken context again
            found["err"] = str(error)
        # Renamed when it is whole: the process may be killed meanwhile.
        part = self._folder / f"{os.getpid()}.part"
        part.write_text(json.dumps(found))
        part.rename(part.with_suffix(".json"))

    def _machine(self) -> dict[str, Any]:
        import torch

        return {"gpu": torch.cuda.get_device_name(self._device), "torch": torch.__version__}

    def _allocator_figures(self) -> dict[str, Any]:
        """PyTorch's own, and gmlake's where PyTorch has none: for a pluggable allocator."""
        import torch

        gmlake = sys.modules.get("gmlake")
        level = gmlake.enabled() if gmlake is not None else None
        found: dict[str, Any] = {"level": level}
        if level is not None:
            found["gmlake"] = own = gmlake.stats(self._device)
        if level == "plain":
            return found | {
                "requested_mib": own.get("requested_peak", 0) / MiB,
                "reserved_mib": own.get("reserved_peak", 0) / MiB,
                "retries": own.get("retries", 0),
            }
        peaks = self._note_peaks()
        return found | {
            "requested_mib": peaks["requested_bytes"] / MiB,
            "reserved_mib": peaks["reserved_bytes"] / MiB,
            "retries": torch.cuda.memory_stats(self._device).get("num_alloc_retries", 0),
        }
