"""Real PyTorch workloads to hold allocators side by side on a GPU; the traces in traces/ were recorded with them.

    python3 bench/workloads.py NAME [--trace OUT.csv.gz]      prints one JSON line

Environment:
    PYTORCH_CUDA_ALLOC_CONF   PyTorch's own allocators ("", expandable_segments:True, backend:cudaMallocAsync)
    SETUP                     a Python file run before CUDA is touched: install another allocator there
    CAP_GIB                   memory cap, set through torch.cuda.set_per_process_memory_fraction
"peak_used_mib" is the device memory this process took, sampled from the driver every 2 ms, less what the CUDA context
itself takes: it means the same under every allocator.
"""
import gzip, json, math, os, random, statistics, sys, threading, time

setup = os.environ.get("SETUP")
if setup:
    exec(compile(open(setup).read(), setup, "exec"), {"__name__": "setup", "__file__": setup})
import torch

STEP, BWD, OPT = 7, 11, 13                       # marks travel as allocations of sizes that nothing else uses
rng = random.Random(1234)
BF = torch.bfloat16

def mark(code):
    torch.empty(code, dtype=torch.uint8, device="cuda")

def lens(n, mean=420, sigma=0.7, lo=32, hi=2048):
    return [max(lo, min(hi, int(rng.lognormvariate(math.log(mean), sigma)))) for _ in range(n)]

def build(cls, cfg):
    torch.set_default_dtype(BF)
    with torch.device("cuda"):
        m = cls(cfg)
    torch.set_default_dtype(torch.float32)
    return m

def models(which):
    import transformers as T
    if which == "gpt2":      return build(T.GPT2LMHeadModel, T.GPT2Config(n_positions=2048, n_embd=1024, n_layer=24, n_head=16))
    if which == "opt1.3b":   return build(T.OPTForCausalLM, T.OPTConfig(hidden_size=2048, num_hidden_layers=24, ffn_dim=8192, num_attention_heads=32, max_position_embeddings=2048, word_embed_proj_dim=2048))
    if which == "llama7b":   return build(T.LlamaForCausalLM, T.LlamaConfig(hidden_size=4096, intermediate_size=11008, num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=32, vocab_size=32000, max_position_embeddings=4096))
    if which == "vicuna13b": return build(T.LlamaForCausalLM, T.LlamaConfig(hidden_size=5120, intermediate_size=13824, num_hidden_layers=40, num_attention_heads=40, num_key_value_heads=40, vocab_size=32000, max_position_embeddings=4096))
    if which == "neox20b":   return build(T.GPTNeoXForCausalLM, T.GPTNeoXConfig(hidden_size=6144, num_hidden_layers=44, num_attention_heads=64, intermediate_size=24576, vocab_size=50432, max_position_embeddings=2048))
    if which == "moe":       return build(T.Qwen3MoeForCausalLM, T.Qwen3MoeConfig(hidden_size=2048, intermediate_size=6144, num_hidden_layers=16, num_attention_heads=32, num_key_value_heads=4, head_dim=64, num_experts=32, num_experts_per_tok=4, moe_intermediate_size=768, vocab_size=64000, max_position_embeddings=4096))
    raise KeyError(which)

TARGETS = {"opt1.3b": ["q_proj", "v_proj"], "vicuna13b": ["q_proj", "v_proj"], "llama7b": ["q_proj", "v_proj"],
           "neox20b": ["query_key_value"], "gpt2": ["c_attn"]}

def lora(m, targets):
    from peft import LoraConfig, get_peft_model
    m = get_peft_model(m, LoraConfig(r=16, lora_alpha=32, target_modules=targets, lora_dropout=0.05))
    m.enable_input_require_grads()
    for p in m.parameters():
        if p.requires_grad:
            p.data = p.data.to(BF)
    return m

def fsdp(m, blocks, offload):
    import torch.distributed as dist
    from torch.distributed.fsdp import CPUOffloadPolicy, OffloadPolicy, fully_shard
    if not dist.is_initialized():
        os.environ.setdefault("MASTER_ADDR", "127.0.0.1"); os.environ.setdefault("MASTER_PORT", "29511")
        os.environ.setdefault("RANK", "0"); os.environ.setdefault("WORLD_SIZE", "1")
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0))); dist.init_process_group("cpu:gloo,cuda:nccl")
    policy = CPUOffloadPolicy() if offload else OffloadPolicy()
    for b in blocks:
        fully_shard(b, offload_policy=policy)
    fully_shard(m, offload_policy=policy)
    return m

def blocks_of(m):
    return max((x for x in m.modules() if isinstance(x, torch.nn.ModuleList)),
               key=lambda x: (len(x), sum(p.numel() for p in x.parameters())))

class Clock:
    """Times steps, each between device synchronisations."""
    def __init__(self): self.ts, self.items = [], 0
    def __enter__(self): torch.cuda.synchronize(); self.t = time.perf_counter(); mark(STEP)
    def __exit__(self, *_): torch.cuda.synchronize(); self.ts.append(time.perf_counter() - self.t)

def train_lm(which, strategy, steps, batch, sharded, mean=420, fixed=None):
    m = models(which); vocab = m.config.vocab_size; clock = Clock()
    if "L" in strategy: m = lora(m, TARGETS[which])
    if "R" in strategy: m.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    m.train(); m.config.use_cache = False
    if sharded: m = fsdp(m, list(blocks_of(m)), "O" in strategy)
    opt = torch.optim.AdamW([p for p in m.parameters() if p.requires_grad], lr=1e-5, foreach=True)
    for _ in range(steps):
        x = torch.randint(0, vocab, (batch, fixed or max(lens(batch, mean)))); att = torch.ones_like(x)
        with clock:
            xg = x.cuda(); loss = m(input_ids=xg, attention_mask=att.cuda(), labels=xg).loss
            mark(BWD); loss.backward(); mark(OPT); opt.step(); opt.zero_grad(set_to_none=True); del loss, xg
        clock.items += x.numel()
    return clock

def pipeline(which, strategy, steps, micro, batch, depth, length=512):
    """1F1B as one pipeline stage sees it: `depth` micro-batches in flight, gradients accumulated, fixed shapes."""
    from collections import deque
    m = models(which); vocab = m.config.vocab_size; clock = Clock()
    if "R" in strategy: m.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    m.train(); m.config.use_cache = False; opt = torch.optim.AdamW(m.parameters(), lr=1e-5, foreach=True)
    for _ in range(steps):
        xs = [torch.randint(0, vocab, (batch, length)) for _ in range(micro)]; q = deque()
        with clock:
            for k in range(micro):
                x = xs[k].cuda(); q.append(m(input_ids=x, labels=x).loss)
                if len(q) == depth: q.popleft().backward()
            while q: q.popleft().backward()
            mark(OPT); opt.step(); opt.zero_grad(set_to_none=True); del x
        clock.items += micro * batch * length
    return clock

def rlhf(which, rounds):
    policy = lora(models(which), TARGETS[which]); ref = models(which).eval(); clock = Clock()
    policy.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    opt = torch.optim.AdamW([p for p in policy.parameters() if p.requires_grad], lr=1e-5)
    logp = lambda m, y: torch.log_softmax(m(input_ids=y, attention_mask=torch.ones_like(y)).logits.float(), -1).gather(-1, y[..., None]).squeeze(-1)
    for _ in range(rounds):
        b = 16; L = max(lens(b, 180)); n = rng.randrange(48, 128); x = torch.randint(0, 50000, (b, L), device="cuda")
        with clock:
            policy.eval(); policy.config.use_cache = True
            with torch.no_grad(): y = policy.generate(input_ids=x, attention_mask=torch.ones_like(x), max_new_tokens=n, min_new_tokens=n, do_sample=True, pad_token_id=0)
            policy.train(); policy.config.use_cache = False; mark(BWD)
            with torch.no_grad(): scored = logp(ref, y)
            for k in range(0, b, 4):
                (-(logp(policy, y[k:k + 4]) - scored[k:k + 4]).mean()).backward()
            mark(OPT); opt.step(); opt.zero_grad(set_to_none=True); del y, scored, x
        clock.items += b * (L + n)
    return clock

def maskrcnn(steps):
    import torchvision
    m = torchvision.models.detection.maskrcnn_resnet50_fpn(weights=None, weights_backbone=None, min_size=(640, 672, 704, 736, 768, 800), max_size=1333).cuda().train()
    opt = torch.optim.SGD(m.parameters(), lr=1e-4, momentum=0.9); clock = Clock()
    for _ in range(steps):
        images, targets = [], []
        for _ in range(4):
            h, w, k = rng.randrange(300, 900), rng.randrange(300, 1100), rng.randrange(1, 24); images.append(torch.rand(3, h, w))
            x0 = torch.rand(k) * (w - 40); y0 = torch.rand(k) * (h - 40)
            bw = 10 + torch.rand(k) * (w - x0 - 12).clamp(min=1); bh = 10 + torch.rand(k) * (h - y0 - 12).clamp(min=1)
            targets.append({"boxes": torch.stack([x0, y0, x0 + bw, y0 + bh], 1), "labels": torch.randint(1, 90, (k,)), "masks": (torch.rand(k, h, w) > .5).to(torch.uint8)})
        with clock:
            loss = sum(m([x.cuda() for x in images], [{k: v.cuda() for k, v in d.items()} for d in targets]).values())
            mark(BWD); loss.backward(); mark(OPT); opt.step(); opt.zero_grad(); del loss
        clock.items += 4
    return clock

def resnet(steps, sizes, batch):
    import torchvision
    m = torchvision.models.resnet50().cuda().to(memory_format=torch.channels_last).train(); clock = Clock()
    opt = torch.optim.SGD(m.parameters(), lr=.01, momentum=.9)
    for _ in range(steps):
        r = rng.choice(sizes); x = torch.rand(batch, 3, r, r); y = torch.randint(0, 1000, (batch,))
        with clock:
            with torch.autocast("cuda", BF):
                loss = torch.nn.functional.cross_entropy(m(x.cuda().contiguous(memory_format=torch.channels_last)), y.cuda())
            mark(BWD); loss.backward(); mark(OPT); opt.step(); opt.zero_grad(); del loss
        clock.items += batch
    return clock

WORKLOADS = {
    "gpt2-n":         lambda: train_lm("gpt2", "", 40, 8, False),
    "gpt2-1f1b-r":    lambda: pipeline("gpt2", "R", 10, 12, 8, 4),
    "opt1.3b-n":      lambda: train_lm("opt1.3b", "", 24, 8, True),
    "opt1.3b-r":      lambda: train_lm("opt1.3b", "R", 24, 16, True),
    "opt1.3b-lr":     lambda: train_lm("opt1.3b", "LR", 40, 32, True),
    "opt1.3b-ro":     lambda: train_lm("opt1.3b", "RO", 6, 16, True),
    "opt1.3b-fixed":  lambda: train_lm("opt1.3b", "", 14, 8, True, fixed=768),
    "vicuna13b-lr":   lambda: train_lm("vicuna13b", "LR", 12, 8, True),
    "llama7b-fixed":  lambda: train_lm("llama7b", "LR", 12, 8, False, fixed=1024),
    "moe-r":          lambda: train_lm("moe", "R", 12, 8, False),
    "maskrcnn":       lambda: maskrcnn(40),
    "resnet50-fixed": lambda: resnet(16, [224], 256),
    "rlhf-opt1.3b":   lambda: rlhf("opt1.3b", 6),
}

def write_trace(path):
    """Writes what PyTorch recorded of its own allocator in the format of traces/README.md."""
    labels = {STEP: "step", BWD: "backward", OPT: "optimizer"}; ids, marks, streams, n = {}, set(), {}, 0
    with gzip.open(path, "wt", compresslevel=9) as f:
        for e in torch.cuda.memory._snapshot()["device_traces"][0]:
            if e["action"] == "alloc" and e["size"] in labels:
                f.write(f"m,{labels[e['size']]}\n"); marks.add(e["addr"])
            elif e["action"] == "alloc":
                ids[e["addr"]] = n; f.write(f"a,{n},{e['size']},{streams.setdefault(e['stream'], len(streams))}\n"); n += 1
            elif e["action"] == "free_completed":
                if e["addr"] in marks: marks.discard(e["addr"])
                elif e["addr"] in ids: f.write(f"f,{ids.pop(e['addr'])}\n")
    return n

def main(workloads):
    name = sys.argv[1]; trace = sys.argv[3] if len(sys.argv) > 3 else None
    rec = {"workload": name, "conf": os.environ.get("PYTORCH_CUDA_ALLOC_CONF", ""), "setup": setup or "", "cap": os.environ.get("CAP_GIB", "")}
    if trace: torch.cuda.memory._record_memory_history(enabled="all", context=None, max_entries=20_000_000)
    torch.manual_seed(0)
    torch.cuda.init(); torch.cuda.synchronize(); free0, total = torch.cuda.mem_get_info(); low, stop = [free0], threading.Event()
    def sample():
        while not stop.wait(0.002): low[0] = min(low[0], torch.cuda.mem_get_info()[0])
    sampler = threading.Thread(target=sample, daemon=True)
    sampler.start()
    if rec["cap"]: torch.cuda.set_per_process_memory_fraction(float(rec["cap"]) * 2**30 / total)
    try:
        c = workloads[name]()
        rec.update(ok=True, ms_med=round(1e3 * statistics.median(c.ts[2:]), 2), s_total=round(sum(c.ts), 3), steps=len(c.ts), items_s=round(c.items / sum(c.ts), 1))
    except torch.OutOfMemoryError as e:
        rec.update(ok=False, err=str(e)[:200])
    stop.set(); sampler.join()                   # the interpreter must not end under it
    rec["peak_used_mib"] = round((free0 - low[0]) / 2**20, 1)
    try:
        st = torch.cuda.memory_stats(); g = lambda k: round(st.get(k, 0) / 2**20, 1)
        rec.update(active_mib=g("active_bytes.all.peak"), requested_mib=g("requested_bytes.all.peak"), reserved_mib=g("reserved_bytes.all.peak"), retries=st.get("num_alloc_retries", 0))
    except Exception as e:                       # an allocator without statistics
        rec["no_stats"] = type(e).__name__
    if trace: rec["allocs"] = write_trace(trace)
    print("REC " + json.dumps(rec), flush=True)

if __name__ == "__main__":
    main(WORKLOADS)
