"""Training programs of fixed shapes, and one that changes: each makes a step, to be called again and again, which returns
its loss, and a list of the weights that it never changes. A still one draws no random numbers from its first step on, so
that several side by side compute the same in whichever order they come to draw."""

import itertools
from functools import partial

import torch
import workloads

BF = torch.bfloat16


def cnn(build, batch, size, mixed=False, changing=(), still=False):
    """A CNN with SGD, in single precision (without TF32, as the papers' GPUs have none), or in mixed precision with
    channels last; sizes take turns where it changes."""
    torch.backends.cudnn.allow_tf32 = mixed
    form = torch.channels_last if mixed else torch.contiguous_format
    model = build().cuda().to(memory_format=form).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    sizes = itertools.cycle(changing or [size])
    target = torch.randint(0, 1000, (batch,), device="cuda")
    images = {n: torch.rand(batch, 3, n, n, device="cuda") for n in {size, *changing}} if still else {}

    def step():
        pixels = next(sizes)
        x = images[pixels].clone() if still else torch.rand(batch, 3, pixels, pixels, device="cuda")
        x = x.contiguous(memory_format=form)
        with torch.autocast("cuda", BF, enabled=mixed):
            out = model(x)
            loss = torch.nn.functional.cross_entropy(getattr(out, "logits", out), target)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return step, []


def vision(name, batch, size=224, **more):
    import torchvision

    options = {"aux_logits": False, "init_weights": False} if name == "inception_v3" else {}
    return lambda still=False: cnn(
        lambda: getattr(torchvision.models, name)(**options), batch, size, still=still, **more
    )


def without_dropout(model):
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        elif isinstance(getattr(module, "dropout", None), float):
            module.dropout = 0.0


def language(which, batch, length, adapted=False, recomputed=False, still=False):
    """A language model in bfloat16 with AdamW; adapted: its own weights are frozen, and LoRA's are trained."""
    model = workloads.models(which)
    if adapted:
        model = workloads.lora(model, workloads.TARGETS[which])
    if recomputed:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    model.train()
    if still:
        without_dropout(model)
    model.config.use_cache = False
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-5, foreach=True)
    x = torch.randint(0, model.config.vocab_size, (batch, length), device="cuda")

    def step():
        loss = model(input_ids=x, labels=x).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    return step, [p for p in model.parameters() if not p.requires_grad]


PROGRAMS = {
    "resnet50": vision("resnet50", 256),
    "vgg16": vision("vgg16", 128),
    "densenet121": vision("densenet121", 128),
    "inception3": vision("inception_v3", 128, 299),
    "resnet50-mixed": vision("resnet50", 256, mixed=True),
    "resnet50-changing": vision("resnet50", 128, mixed=True, changing=(192, 224)),
    "gpt2": partial(language, "gpt2", 8, 1024),
    "opt1.3b": partial(language, "opt1.3b", 8, 768),
    "opt1.3b-recomputed": partial(language, "opt1.3b", 16, 768, recomputed=True),
    "opt1.3b-lora-recomputed": partial(language, "opt1.3b", 16, 768, adapted=True, recomputed=True),
    "llama7b-lora": partial(language, "llama7b", 8, 1024, adapted=True, recomputed=True),
}
# Those of which an operator has no deterministic version by PyTorch's list: a warning then, no error. (VGG pools 7 x 7 to
# 7 x 7.) Not for all, as some operators would then not take the version they have.
ONLY_WARN = {"vgg16"}
