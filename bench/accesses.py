"""Records what PyTorch's operators read and write, and for how long they run, in a few steps of a training run:

    python3 bench/accesses.py NAME TRACE.csv.gz

A trace begins with what is live after two steps, and tells of the next three. Frozen weights are said to have a copy on
the host. Each step begins behind a kernel that only takes time, so that the device never waits for the host, which the
recording slows down: the times are the device's own. Prints the unrecorded step's time and the peak. Needs the package
of examples/pytorch, a GPU, and what workloads.py needs.
"""

import argparse
import itertools
import json
import statistics
import sys
import time

import gmlake

gmlake.enable(plan="off")

import torch  # noqa: E402
import workloads  # noqa: E402

WARM, RECORDED, TIMED = 2, 3, 5
BF = torch.bfloat16


def cnn(build, batch, size, changing=()):
    """A CNN with mixed precision and SGD; sizes take turns where it changes."""
    model = build().cuda().to(memory_format=torch.channels_last).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    sizes = itertools.cycle(changing or [size])
    target = torch.randint(0, 1000, (batch,), device="cuda")

    def step():
        pixels = next(sizes)
        x = torch.rand(batch, 3, pixels, pixels, device="cuda").contiguous(memory_format=torch.channels_last)
        with torch.autocast("cuda", BF):
            out = model(x)
            loss = torch.nn.functional.cross_entropy(getattr(out, "logits", out), target)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step, []


def vision(name, batch, size=224, **more):
    import torchvision

    options = {"aux_logits": False, "init_weights": False} if name == "inception_v3" else {}
    return lambda: cnn(lambda: getattr(torchvision.models, name)(**options), batch, size, **more)


def language(which, batch, length, adapted=False, recomputed=False):
    """A language model in bfloat16 with AdamW; adapted: its own weights are frozen, and LoRA's are trained."""
    model = workloads.models(which)
    if adapted:
        model = workloads.lora(model, workloads.TARGETS[which])
    if recomputed:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    model.train()
    model.config.use_cache = False
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-5, foreach=True)
    x = torch.randint(0, model.config.vocab_size, (batch, length), device="cuda")

    def step():
        model(input_ids=x, labels=x).loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step, [p for p in model.parameters() if not p.requires_grad]


PROGRAMS = {
    "resnet50": vision("resnet50", 256),
    "vgg16": vision("vgg16", 128),
    "densenet121": vision("densenet121", 128),
    "inception3": vision("inception_v3", 128, 299),
    "resnet50-changing": vision("resnet50", 128, changing=(192, 224, 256)),
    "gpt2": lambda: language("gpt2", 8, 1024),
    "opt1.3b": lambda: language("opt1.3b", 8, 768),
    "opt1.3b-recomputed": lambda: language("opt1.3b", 16, 768, recomputed=True),
    "llama7b-lora": lambda: language("llama7b", 8, 1024, adapted=True, recomputed=True),
}


def timed(step):
    torch.cuda.synchronize()
    began = time.perf_counter()
    step()
    torch.cuda.synchronize()
    return time.perf_counter() - began


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("name", choices=PROGRAMS)
    options.add_argument("trace")
    given = options.parse_args()
    torch.manual_seed(0)
    step, frozen = PROGRAMS[given.name]()
    for _ in range(WARM):
        step()
    plain = statistics.median(timed(step) for _ in range(TIMED))
    torch.cuda.reset_peak_memory_stats()
    with gmlake.record(given.trace):
        gmlake.frozen(*frozen)
        with gmlake.accesses():
            for _ in range(RECORDED):
                torch.cuda.synchronize()
                torch.cuda._sleep(int(1e9))  # cycles: half a second and more, in which the host runs ahead
                with gmlake.step():
                    step()
    peak = torch.cuda.max_memory_allocated()
    print(json.dumps({"name": given.name, "step_ms": round(1e3 * plain, 2), "peak_mib": round(peak / 2**20, 1)}))


if __name__ == "__main__":
    sys.exit(main())
