"""A random mix over threads and streams; every tensor holds a pattern of its own that kernels write and check.

STRESS_SEED repeats a run's choices (not its timing); STRESS_STEPS makes it longer.
"""

import itertools
import os
import random
from concurrent.futures import ThreadPoolExecutor

import torch
from on_device import GiB, KiB, MiB, allocated, is_out_of_memory, limited, runs_out, settle

THREADS, STREAMS, ROUNDS = 4, 6, 4
STEPS = int(os.environ.get("STRESS_STEPS", 400))  # a thread and round
LIMIT = 3 * GiB
LIVE = 800 * MiB  # in one thread's hands: all together somewhat more than the limit, so that requests are refused
EXACT = 24.0  # the gradient of sum((2x)²) at x = 3


class walker:
    """One thread's tensors and choices. `bad[n]` counts on the device what was found wrong on stream n."""

    values = itertools.count(1)

    def __init__(self, seed, streams, bad):
        self.random = random.Random(seed)
        self.streams, self.bad = streams, bad
        self.live = []  # (tensor, its value, number of its stream)
        self.refused = 0

    def size(self, smallest=512, largest=64 * MiB):
        """Elements of four bytes; every power of two as likely as another."""
        return int(smallest * (largest / smallest) ** self.random.random()) // 4

    def check(self, tensor, value, n):
        with torch.cuda.stream(self.streams[n]):
            self.bad[n] += (tensor != value).sum()

    def allocate(self):
        n, value = self.random.randrange(len(self.streams)), next(self.values)
        with torch.cuda.stream(self.streams[n]):
            tensor = torch.full((self.size(),), value, dtype=torch.int32, device="cuda")
        self.live.append((tensor, value, n))
        while sum(4 * tensor.numel() for tensor, _, _ in self.live) > LIVE:
            self.release()

    def pick(self):
        if not self.live:
            self.allocate()
        return self.random.randrange(len(self.live))

    def release(self):
        at = self.pick()
        self.check(*self.live[at])
        del self.live[at]

    def lend(self):
        """Another stream reads it, and it's freed at once."""
        at = self.pick()
        tensor, value, n = self.live[at]
        other = self.random.randrange(len(self.streams))
        self.streams[other].wait_stream(self.streams[n])
        tensor.record_stream(self.streams[other])
        self.check(tensor, value, other)
        del self.live[at], tensor

    def differentiate(self):
        n = self.random.randrange(len(self.streams))
        with torch.cuda.stream(self.streams[n]):
            x = torch.full((self.size(KiB, 8 * MiB),), 3.0, device="cuda", requires_grad=True)
            (x * 2).square().sum().backward()
            self.bad[n] += (x.grad != EXACT).sum()

    def exhaust(self):
        with runs_out():
            torch.empty(2 * LIMIT, dtype=torch.uint8, device="cuda")

    def empty_cache(self):
        torch.cuda.empty_cache()

    def walk(self, steps):
        actions = [self.allocate, self.release, self.lend, self.differentiate, self.exhaust, self.empty_cache]
        for action in self.random.choices(actions, [200, 60, 40, 20, 1, 1], k=steps):
            try:
                action()
            except RuntimeError as error:
                if not is_out_of_memory(error):
                    raise
                self.refused += 1
                del self.live[: len(self.live) // 2 + 1]


def captured(static):
    """A graph with memory of its own in it: output = 3 * input + 1, by way of three tensors."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        doubled = static * 2
        tripled = doubled + static
        del doubled
        output = tripled + 1
        del tripled
    return graph, output


def test_no_byte_changes_under_a_random_mix_and_all_memory_comes_back():
    seed = int(os.environ.get("STRESS_SEED", random.SystemRandom().randrange(1 << 32)))
    print(f"STRESS_SEED={seed}")
    choices = random.Random(seed)
    streams = [torch.cuda.current_stream(), *(torch.cuda.Stream() for _ in range(STREAMS - 1))]
    bad = torch.zeros(STREAMS + 1, dtype=torch.int64, device="cuda")
    torch.cuda.synchronize()
    baseline = allocated()

    walkers = [walker(choices.randrange(1 << 32), streams, bad) for _ in range(THREADS)]
    static = torch.zeros(4 * MiB, dtype=torch.int32, device="cuda")
    replays, graphs = 0, []
    with limited(LIMIT), ThreadPoolExecutor(THREADS) as threads, torch.cuda.stream(torch.cuda.Stream()):
        for _ in range(ROUNDS):
            graphs.append(captured(static))
            if len(graphs) > 2:
                del graphs[choices.randrange(len(graphs))]
            walks = [threads.submit(w.walk, STEPS) for w in walkers]
            while not all(walk.done() for walk in walks):
                graph, output = choices.choice(graphs)
                value = choices.randrange(1 << 20)
                static.fill_(value)
                graph.replay()
                try:
                    bad[-1] += (output != 3 * value + 1).sum()
                except RuntimeError as error:
                    assert is_out_of_memory(error), error
                replays += 1
                torch.cuda.current_stream().synchronize()  # or the queue would only grow
            for w, walk in zip(walkers, walks):
                walk.result()
                del w.live[::2]  # room for the next capture
    for w in walkers:
        while w.live:
            w.release()
    torch.cuda.synchronize()
    print(f"{sum(w.refused for w in walkers)} requests refused, {replays} replays")
    assert bad.tolist() == [0] * len(bad)
    assert replays >= ROUNDS

    del graph, output, graphs, static, walkers, walks
    settle()
    assert allocated() == baseline
