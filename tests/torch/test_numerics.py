"""The same training run gives the same bits under gmlake as under PyTorch's native allocator."""

import gmlake
import pytest
from fresh_process import run_gmlake, run_native, together

TRAIN = """
import os, random
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

torch.use_deterministic_algorithms(True)
VOCABULARY, WIDTH, HEADS, LAYERS, BATCH, STEPS = 1000, 256, 4, 4, 8, 20


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = self.qkv(self.before(x)).view(b, n, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        future = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1)
        weights = (q @ k.transpose(-1, -2) / 8).masked_fill(future, float("-inf")).softmax(-1)
        mixed = F.dropout(weights, 0.1).to(v.dtype) @ v
        x = x + F.dropout(self.out(mixed.transpose(1, 2).reshape(b, n, WIDTH)), 0.1)
        return x + F.dropout(self.mlp(self.between(x)), 0.1)


class Model(nn.Module):
    def __init__(self, recompute):
        super().__init__()
        self.recompute = recompute
        self.token, self.place = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(512, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens):
        x = self.token(tokens) + self.place.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.recompute else block(x)
        return self.head(x)


def train(bf16, recompute):
    torch.manual_seed(0)
    lengths = random.Random(0)
    model = Model(recompute).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(STEPS):
        tokens = torch.randint(0, VOCABULARY, (BATCH, lengths.randrange(32, 400) + 1)).cuda()
        with torch.autocast("cuda", torch.bfloat16, enabled=bf16):
            scores = model(tokens[:, :-1])
            loss = F.cross_entropy(scores.float().flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item().hex())
    return losses + [p.double().sum().item().hex() for p in model.parameters()]


hand_back({"float32": train(False, False), "bfloat16, recomputed": train(True, True)})
"""

DETERMINISTIC = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
LEVELS = [gmlake.enabled()] if gmlake.enabled() == "plain" else ["full", "plain"]


@pytest.fixture(scope="module")
def runs():
    each = {level: lambda level=level: run_gmlake(TRAIN, level=level, env=DETERMINISTIC) for level in LEVELS}
    return together({"native": lambda: run_native(TRAIN, env=DETERMINISTIC), **each})


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("kind", ["float32", "bfloat16, recomputed"])
def test_losses_and_weights_are_bit_equal_to_the_native_allocators(runs, kind, level):
    native = runs["native"].result().value[kind]
    assert len(set(native[:20])) > 10, "the run trains nothing"
    assert runs[level].result().value[kind] == native
