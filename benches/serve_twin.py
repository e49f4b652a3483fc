#!/usr/bin/env python3
"""The same networks in PyTorch behind openpi's own server loop: what `refactor-vla serve` is compared with.

    python benches/serve_twin.py RUN --weights weights/dinov2-small --port 8001 [--device cuda]

Weights, sizes, image preprocessing and Euler steps are those of the run. A program is written at the first request of an
episode and then kept, greedily and without type checking, which is less work than our beam. The loop is that of openpi's
`websocket_policy_server.py`: one asyncio task per connection, inference inside it. Needs torch, safetensors, numpy, pillow,
websockets and openpi-client.
"""

import argparse
import asyncio
import http
import json
import sys
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
import websockets.asyncio.server
from openpi_client import msgpack_numpy
from PIL import Image
from safetensors import safe_open
from safetensors.torch import load_file

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "crates/models/fixtures/golden/wake"))
from twin import Decoder, DecoderConfig, Emitter, EmitterConfig

BOS, EOS, SIDE = 1, 2, 224
MEAN, DEVIATION = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--weights", type=Path, help="folder of the DINOv2 weights; without it images are ignored")
    parser.add_argument("--port", type=int, default=8001)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    policy = Policy(options.run, options.weights, options.device)
    asyncio.run(serve(policy, options.port))


class DinoV2:
    """DINOv2 from a folder of the Hugging Face Hub; gives class tokens."""

    def __init__(self, folder, device):
        self.config = json.loads((folder / "config.json").read_text())
        dtype = torch.float32 if device == "cpu" else torch.float16
        self.weights = {key: value.to(device, dtype) for key, value in load_file(folder / "model.safetensors").items()}
        self.device, self.dtype = device, dtype
        table = self.weights["embeddings.position_embeddings"].float()
        grid, side, width = int((table.shape[1] - 1) ** 0.5), SIDE // 14, table.shape[2]
        patches = table[:, 1:].reshape(1, grid, grid, width).permute(0, 3, 1, 2)
        patches = F.interpolate(patches, size=(side, side), mode="bicubic", align_corners=False)
        self.places = torch.cat([table[:, :1], patches.flatten(2).transpose(1, 2)], 1).to(dtype)

    def linear(self, x, name):
        return F.linear(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def norm(self, x, name):
        return F.layer_norm(x, x.shape[-1:], self.weights[f"{name}.weight"], self.weights[f"{name}.bias"], 1e-6)

    def __call__(self, pixels):
        """[B, 224, 224, 3] u8 to [B, width]"""
        x = ((pixels / 255.0 - MEAN) / DEVIATION).permute(0, 3, 1, 2).to(self.device, self.dtype)
        name = "embeddings.patch_embeddings.projection"
        x = F.conv2d(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"], stride=14)
        x = x.flatten(2).transpose(1, 2)
        x = torch.cat([self.weights["embeddings.cls_token"].expand(len(x), -1, -1), x], 1) + self.places
        heads = self.config["num_attention_heads"]
        for layer in range(self.config["num_hidden_layers"]):
            at = f"encoder.layer.{layer}"
            y = self.norm(x, f"{at}.norm1")
            parts = (self.linear(y, f"{at}.attention.attention.{part}") for part in ("query", "key", "value"))
            split = (part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in parts)
            seen = F.scaled_dot_product_attention(*split).transpose(1, 2).flatten(2)
            x = x + self.linear(seen, f"{at}.attention.output.dense") * self.weights[f"{at}.layer_scale1.lambda1"]
            y = self.linear(F.gelu(self.linear(self.norm(x, f"{at}.norm2"), f"{at}.mlp.fc1")), f"{at}.mlp.fc2")
            x = x + y * self.weights[f"{at}.layer_scale2.lambda1"]
        return self.norm(x[:, :1], "layernorm")[:, 0].float()


class Policy:
    def __init__(self, run, weights, device):
        folder = next(f for f in [run / "with", *sorted(run.glob("t[0-9]*"), reverse=True)] if (f / "decoder").is_dir())
        self.device = device
        self.emitter, self.record = load(folder / "emitter", emitter)
        self.decoder, _ = load(folder / "decoder", decoder)
        self.emitter.to(device), self.decoder.to(device)
        self.decoder.time.waves = self.decoder.time.waves.float().to(device)
        self.scales = {
            key: [torch.tensor(value[part], device=device) for part in ("offset", "scale")]
            for key, value in self.record["scales"].items()
        }
        self.vision = DinoV2(weights, device) if weights else None
        self.words = {word: at for at, word in enumerate(self.record["model"]["words"]["words"], 1)}
        self.start = torch.randn(1, self.decoder.config.chunk, self.record["widths"]["actions"]).to(device)

    def metadata(self):
        widths, chunk = self.record["widths"], self.decoder.config.chunk
        return {"action_horizon": chunk, "action_dim": widths["actions"], "state_dim": widths["states"]}

    @torch.inference_mode()
    def infer(self, request, episode):
        state = self.standard("states", torch.tensor(np.asarray(request["observation/state"], np.float32))[None])
        features = self.see(request)
        if request.get("reset") or episode.get("prompt") != request["prompt"]:
            episode.update(prompt=request["prompt"], program=self.write(request["prompt"], features, state))
        actions = self.decode(episode["program"], features, state)[0]
        offset, scale = self.scales["actions"]
        return {"actions": (actions * scale + offset).cpu().numpy()}

    def standard(self, key, values):
        offset, scale = self.scales[key]
        return (values.to(self.device) - offset) / scale

    def see(self, request):
        width = self.record["widths"]["features"]
        if not width:
            return None
        if self.vision is None:
            return torch.zeros(1, width, device=self.device)
        images = [request["observation/image"], request["observation/wrist_image"]]
        resized = [np.asarray(Image.fromarray(image).resize((SIDE, SIDE), Image.BICUBIC)) for image in images]
        return self.standard("features", self.vision(torch.tensor(np.stack(resized))).flatten()[None])

    def write(self, prompt, features, state):
        words = [self.words.get(word, 0) for word in prompt.lower().split()][: self.emitter.config.words]
        words = torch.tensor([words + [0] * (self.emitter.config.words - len(words))], device=self.device)
        tokens = [BOS]
        while len(tokens) < self.emitter.config.tokens and tokens[-1] != EOS:
            inputs = torch.tensor([tokens], device=self.device)
            tokens.append(int(self.emitter.scores(words, features, state, inputs)[0, -1].argmax()))
        return torch.tensor([tokens[1:]], device=self.device)

    def decode(self, program, features, state):
        model = self.decoder
        parts = [model.term(program)]
        if model.features is not None:
            parts.append(model.features(features.unflatten(1, (model.config.feature_tokens, -1))))
        if model.state is not None:
            parts.append(model.state(state)[:, None])
        prefix, x, steps = torch.cat(parts, 1), self.start, model.config.steps
        for step in range(steps):
            times = torch.full([1], step / steps, device=self.device)
            tokens = torch.cat([prefix, model.action(x) + model.time(times)[:, None]], 1) + model.place
            x = x + model.output(model.transformer(tokens)[:, -model.config.chunk :]) / steps
        return x


def load(folder, build):
    path = folder / "model.safetensors"
    with safe_open(path, "pt") as file:
        record = json.loads(file.metadata()["run"])["config"]["metadata"]
    model = build(record)
    model.load_state_dict(load_file(path))
    return model.eval(), record


def sizes(record):
    """The sizes of a head, without what changes nothing for the twin."""
    config = dict(record["model"]["config"])
    config.pop("form")
    if config.pop("eye", None) is not None:
        sys.exit(
            "this policy sees images with an eye of its own, which the twin does not have; expected a run whose "
            "`wake.emitter.model.eye` and `wake.decoder.model.eye` are not set (any preset but `eye`)"
        )
    return config


def emitter(record):
    widths, words = record["widths"], record["model"]["words"]
    symbols = 1 + len(words["words"]) + words["buckets"]
    vocabulary = len(record["model"]["vocabulary"])
    return Emitter(EmitterConfig(**sizes(record)), widths["features"], widths["states"], symbols, vocabulary)


def decoder(record):
    widths = record["widths"]
    vocabulary = len(record["model"]["vocabulary"])
    return Decoder(DecoderConfig(**sizes(record)), widths["features"], widths["states"], widths["actions"], vocabulary)


async def serve(policy, port):
    """openpi's loop."""

    async def handle(connection):
        packer, episode, previous = msgpack_numpy.Packer(), {}, None
        await connection.send(packer.pack(policy.metadata()))
        while True:
            try:
                begun = time.monotonic()
                request = msgpack_numpy.unpackb(await connection.recv())
                asked = time.monotonic()
                reply = policy.infer(request, episode)
                reply["server_timing"] = {"infer_ms": (time.monotonic() - asked) * 1000}
                if previous is not None:
                    reply["server_timing"]["prev_total_ms"] = previous * 1000
                await connection.send(packer.pack(reply))
                previous = time.monotonic() - begun
            except websockets.ConnectionClosed:
                return

    def health(connection, request):
        return connection.respond(http.HTTPStatus.OK, "OK\n") if request.path == "/healthz" else None

    server = websockets.asyncio.server.serve(
        handle, "127.0.0.1", port, compression=None, max_size=None, process_request=health
    )
    async with server as running:
        print(f"listening on port {port}", flush=True)
        await running.serve_forever()


if __name__ == "__main__":
    main()
