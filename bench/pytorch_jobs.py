"""What several training programs take that run side by side within a part of their joint peak, as threads of one process:

    python3 bench/pytorch_jobs.py [--jobs resnet50-mixed:24 gpt2:24 opt1.3b-lora-recomputed:12] [--guest resnet50-changing:8]
                                  [--share 0.6 | --limit-mib N] [--warm 24] [--profile FILE.json.gz]

Each job runs the steps that stand behind its name, after as many to get warm; the guest begins when the first third of
the jobs' steps is done, and leaves with all its memory. Runs everything twice, each time in a process of its own: without
a limit, and inside `gmlake.swap` with that share of the first run's peak of allocated bytes. That peak is another from run
to run, as it depends on how the jobs' steps meet: to hold versions against each other, give one limit to all. Prints one
JSON object: the time from the last job's getting warm until all have run their steps, the peaks, whether the losses are
the same, and of the second run each job's steps, in milliseconds, and what gmlake tells: in all, and of that time.
`--profile` also writes what PyTorch's profiler sees of two seconds of the second, for pytorch_gaps.py, which are slower.
Needs the package of examples/pytorch, a GPU, and what workloads.py needs.
"""

import argparse
import contextlib
import itertools
import json
import os
import subprocess
import sys
import threading
import time


def named(text):
    name, _, steps = text.partition(":")
    return name, int(steps)


def profiled(seconds, file):
    import torch

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        time.sleep(seconds)
    profile.export_chrome_trace(file)


def run(jobs, guest, warm, limit, profile):
    import gmlake

    gmlake.enable(plan="off" if limit else "auto")
    import torch
    from programs import PROGRAMS

    torch.use_deterministic_algorithms(True)
    torch.cuda.init()
    lock = threading.Lock()
    ready = threading.Barrier(len(jobs) + 1)
    losses, each, failed, done = {}, {}, [], []
    third = threading.Event()

    def program(name):
        torch.manual_seed(0)
        with gmlake.swappable() if limit else contextlib.nullcontext():
            return PROGRAMS[name](still=True)

    def stream():
        return gmlake.job() if limit else torch.cuda.stream(torch.cuda.Stream())

    def train(index, name, steps, step):
        try:
            with stream():
                for _ in range(warm):
                    step()
                torch.cuda.current_stream().synchronize()
                ready.wait()
                values, ends = [], [time.perf_counter()]
                for i in range(steps):
                    values.append(step())
                    torch.cuda.current_stream().synchronize()
                    ends.append(time.perf_counter())
                    if i >= steps // 3:
                        third.set()
                with lock:
                    losses[f"{index}:{name}"] = [v.item() for v in values]
                    each[f"{index}:{name}"] = [round(1e3 * (b - a)) for a, b in itertools.pairwise(ends)]
                    done.append(time.perf_counter())
        except BaseException as error:
            failed.append(f"{name}: {error}")
            third.set()
            ready.abort()

    def visit(name, steps):
        third.wait()
        try:
            with stream():
                step, _ = program(name)
                for _ in range(steps):
                    step()
                torch.cuda.current_stream().synchronize()
                del step
        except BaseException as error:
            failed.append(f"{name}: {error}")

    def told():
        return {k: v for k, v in gmlake.stats(0).items() if k.startswith(("swap_", "page_", "driver", "stitch"))}

    programs = [program(name) for name, _ in jobs]
    frozen = [p for _, unchanged in programs for p in unchanged]
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    with gmlake.swap(limit, frozen=frozen) if limit else contextlib.nullcontext():
        threads = [threading.Thread(target=train, args=(i, *job, programs[i][0])) for i, job in enumerate(jobs)]
        if guest is not None:
            threads.append(threading.Thread(target=visit, args=guest))
        for thread in threads:
            thread.start()
        with contextlib.suppress(threading.BrokenBarrierError):
            ready.wait()
        began, before = time.perf_counter(), told()
        if profile:
            third.wait()
            profiled(2, profile)
        for thread in threads:
            thread.join()
        figures = told()
        peak, reserved = torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()
    if failed:
        raise SystemExit("; ".join(failed))
    timed = {k: v - before[k] for k, v in figures.items() if v != before[k]}
    return {
        "s": max(done) - began,
        "losses": losses,
        "each_ms": each,
        "peak": peak,
        "reserved": reserved,
        "figures": figures,
        "timed": timed,
    }


def apart(given, limit):
    command = [sys.executable, __file__, "--warm", str(given.warm), "--run", str(limit), "--jobs"]
    command += [f"{name}:{steps}" for name, steps in given.jobs]
    if given.guest is not None:
        command += ["--guest", "{}:{}".format(*given.guest)]
    if limit and given.profile:
        command += ["--profile", given.profile]
    environment = dict(os.environ, CUBLAS_WORKSPACE_CONFIG=":4096:8")
    said = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(said.stdout.splitlines()[-1])


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = ["resnet50-mixed:24", "gpt2:24", "opt1.3b-lora-recomputed:12"]
    options.add_argument("--jobs", nargs="+", type=named, default=[named(text) for text in default])
    options.add_argument("--guest", type=named)
    within = options.add_mutually_exclusive_group()
    within.add_argument("--share", type=float, default=0.6)
    within.add_argument("--limit-mib", type=int)
    options.add_argument("--warm", type=int, default=24)
    options.add_argument("--profile")
    options.add_argument("--run", type=int, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.run is not None:
        print(json.dumps(run(given.jobs, given.guest, given.warm, given.run, given.profile)))
        return
    free = apart(given, 0)
    limit = given.limit_mib << 20 if given.limit_mib is not None else int(given.share * free["peak"])
    swapped = apart(given, limit)
    print(
        json.dumps(
            {
                "jobs": [name for name, _ in given.jobs],
                "guest": given.guest and given.guest[0],
                "share": round(limit / free["peak"], 3),
                "limit_mib": limit >> 20,
                "reserved_mib": swapped["reserved"] >> 20,
                "s": round(swapped["s"], 2),
                "unlimited_s": round(free["s"], 2),
                "ratio": round(swapped["s"] / free["s"], 3),
                "same_losses": free["losses"] == swapped["losses"],
                "each_ms": swapped["each_ms"],
                "figures": swapped["figures"],
                "timed": swapped["timed"],
            }
        ),
        flush=True,
    )


if __name__ == "__main__":
    main()
