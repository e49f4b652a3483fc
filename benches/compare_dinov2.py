#!/usr/bin/env python3
"""Times our DINOv2 beside that of transformers, on this machine's CPU, in turns.

    cargo build --release -p models --example encode_speed
    python benches/compare_dinov2.py --weights ../shared/weights/dinov2-small

Both get the same folder of weights, pictures of 224×224 and as many threads, and compute in f32. Each turn runs one process
of each, which warms up with one batch and times the others, so that what else the machine does hits both. Needs torch,
safetensors and transformers.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

PEER = """
import json, sys, time
import torch
from transformers import Dinov2Model
folder, batch, rounds, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
torch.set_num_threads(threads)
model = Dinov2Model.from_pretrained(folder, dtype=torch.float32).eval()
pixels = (torch.arange(batch * 224 * 224 * 3) * 31 % 251).reshape(batch, 224, 224, 3).to(torch.uint8)
mean, deviation = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
times = []
with torch.inference_mode():
    for at in range(rounds + 1):
        start = time.perf_counter()
        values = ((pixels / 255.0 - mean) / deviation).permute(0, 3, 1, 2)
        model(pixel_values=values).last_hidden_state[:, 0].numpy()
        times.append((time.perf_counter() - start) * 1e3 / batch)
times = sorted(times[1:])
print(json.dumps({"batch": batch, "fastest_ms": round(times[0], 2), "median_ms": round(times[len(times) // 2], 2)}))
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--weights", type=Path, required=True, help="folder with config.json and model.safetensors")
    parser.add_argument("--binary", type=Path, default=ROOT / "target/release/examples/encode_speed")
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--rounds", type=int, default=5, help="batches that a process times")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    if not arguments.binary.exists():
        sys.exit(f"error: {arguments.binary} is not there\nhint: cargo build --release -p models --example encode_speed")
    threads = str(arguments.threads)
    environment = {**os.environ, "RAYON_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}
    print(f"{platform.machine()}, {os.cpu_count()} cores, {threads} threads, load {os.getloadavg()[0]:.1f}; ms per picture")
    for batch in arguments.batch:
        measured = {"ours": [], "transformers": []}
        for _ in range(arguments.turns):
            for name, command in {
                "ours": [arguments.binary, arguments.weights, batch, arguments.rounds],
                "transformers": [sys.executable, "-c", PEER, arguments.weights, batch, arguments.rounds, threads],
            }.items():
                done = subprocess.run([str(part) for part in command], env=environment, check=True, capture_output=True)
                measured[name].append(json.loads(done.stdout.splitlines()[-1]))
        line = [f"batch {batch:>3}"]
        for name, runs in measured.items():
            fastest = min(run["fastest_ms"] for run in runs)
            median = statistics.median(run["median_ms"] for run in runs)
            line.append(f"{name}: fastest {fastest:.1f}, median {median:.1f}")
        print("   ".join(line))
    return 0


if __name__ == "__main__":
    sys.exit(main())
