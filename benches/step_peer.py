"""One training step of the PyTorch twin of M_phi, timed: loss, backward pass, AdamW. Prints one JSON object.

python benches/step_peer.py --preset m188 --batch 256 --device cuda --precision bf16 --compile --steps 50
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "crates/models/fixtures/golden/world_model"))
import twin  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("--preset", default="small")
parser.add_argument("--batch", type=int, default=32)
parser.add_argument("--device", default="cpu")
parser.add_argument("--precision", default="f32", choices=["f32", "bf16"])
parser.add_argument("--compile", action="store_true")
parser.add_argument("--steps", type=int, default=20)
parser.add_argument("--warmup", type=int, default=5)
parser.add_argument("--threads", type=int)
options = parser.parse_args()
if options.threads:
    torch.set_num_threads(options.threads)
torch.backends.cuda.matmul.allow_tf32 = True
torch.manual_seed(0)

config = twin.Config(**twin.PRESETS[options.preset], contrast="none")
model = twin.WorldModel(config, 768, 8, 7).to(options.device)
optimizer = torch.optim.AdamW(model.parameters(), 3e-4, (0.9, 0.95), 1e-8, 0.01, fused=True)
draw = lambda width: torch.randn(options.batch, config.horizon, width, device=options.device)
batch = {"features": draw(768), "states": draw(8), "actions": draw(7)}
noise = draw(config.latent)
loss_of = torch.compile(model.loss) if options.compile else model.loss


def step():
    with torch.autocast(options.device.split(":")[0], torch.bfloat16, enabled=options.precision == "bf16"):
        loss, _ = loss_of(batch, noise)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss


wait = torch.cuda.synchronize if options.device.startswith("cuda") else lambda: None
times = []
for index in range(options.warmup + options.steps):
    start = time.perf_counter()
    loss = step()
    wait()
    if index >= options.warmup:
        times.append((time.perf_counter() - start) * 1e3)
start = time.perf_counter()
for _ in range(options.steps):
    step()
wait()
streamed = (time.perf_counter() - start) * 1e3 / options.steps
memory = torch.cuda.max_memory_allocated() if options.device.startswith("cuda") else None
print(json.dumps({
    "side": "torch.compile" if options.compile else "torch", "torch": torch.__version__, "preset": options.preset,
    "batch": options.batch, "precision": options.precision, "parameters": sum(p.numel() for p in model.parameters()),
    "ms": round(streamed, 3), "ms_with_wait": round(statistics.median(times), 3), "memory_bytes": memory, "loss": loss.item(),
}))
