#!/usr/bin/env python3
"""The same networks in PyTorch behind openpi's own server loop: what `refactor-vla serve` is compared with.

    python benches/serve_twin.py RUN --weights weights/dinov2-small --port 8001 [--device cuda]

Weights, sizes, image preprocessing and Euler steps are those of the run. A program is written at the first request of an
episode and then kept, greedily, without type checking and without the numbers in it, which is less work than our beam. The
loop is that of openpi's
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


class Eye:
    """The eye of a head (`crates/models/src/eye.rs`): from images to tokens."""

    def __init__(self, config, weights, device):
        self.config, self.device = config, device
        self.weights = {key: value.to(device) for key, value in weights.items()}

    def linear(self, x, name):
        return F.linear(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def norm(self, x, name):
        return F.layer_norm(x, x.shape[-1:], self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def convolution(self, x, name, stride):
        """[images, side, side, inputs] to [images, side / stride, side / stride, outputs]"""
        kernel = self.weights[f"{name}.weight"].unflatten(1, (3, 3, -1)).permute(0, 3, 1, 2)
        y = F.conv2d(x.permute(0, 3, 1, 2), kernel, self.weights[f"{name}.bias"], stride, 1)
        return F.gelu(y, approximate="tanh").permute(0, 2, 3, 1)

    def __call__(self, pixels):
        """[cameras, side, side, 3] u8 to [1, tokens, width]"""
        c = self.config
        x = pixels.to(self.device) / 255.0 - 0.5
        x = x.unflatten(1, (-1, c["patch"])).unflatten(3, (-1, c["patch"])).transpose(2, 3).flatten(3)
        x = F.gelu(self.linear(x, "patches"), approximate="tanh")
        tokens = []
        for stage in range(c["stages"]):
            if stage > 0:
                x = self.convolution(self.norm(x, f"stage_{stage}.halved.norm"), f"stage_{stage}.halved", 2)
            for at in (f"stage_{stage}.block_{block}" for block in range(c["blocks"])):
                y = self.convolution(self.norm(x, f"{at}.norm"), f"{at}.first", 1)
                x = x + self.convolution(y, f"{at}.second", 1)
            if c["keypoints"] and stage == max(c["stages"] - 2, 0):
                tokens.append(self.keypoints(x))
        if c["grid"]:
            y = self.norm(x, "grid.norm").unflatten(1, (c["grid"], -1)).unflatten(3, (c["grid"], -1))
            tokens.append(self.linear(y.transpose(2, 3).flatten(3).flatten(1, 2), "grid.out"))
        return torch.cat(tokens, 1).flatten(0, 1)[None]

    def keypoints(self, x):
        side = x.shape[1]
        maps = self.linear(self.norm(x, "keypoints.norm"), "keypoints.maps").flatten(1, 2)
        at = (2 * torch.arange(side, device=x.device) + 1) / side - 1
        places = torch.stack([at.repeat(side), at.repeat_interleave(side)], 1)
        expected = (4 * maps).softmax(1).transpose(1, 2) @ places
        return self.linear(expected.flatten(1), "keypoints.out")[:, None]


class Policy:
    def __init__(self, run, weights, device):
        folder = next(f for f in [run / "with", *sorted(run.glob("t[0-9]*"), reverse=True)] if (f / "decoder").is_dir())
        self.device = device
        self.emitter, self.record = load(folder / "emitter", emitter, device)
        self.decoder, _ = load(folder / "decoder", decoder, device)
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
            seen = self.emitter.eye(features).flatten(1) if self.emitter.eye else features
            episode.update(prompt=request["prompt"], program=self.write(request["prompt"], seen, state))
        actions = self.decode(episode["program"], features, state)[0]
        offset, scale = self.scales["actions"]
        return {"actions": (actions * scale + offset).cpu().numpy()}

    def standard(self, key, values):
        offset, scale = self.scales[key]
        return (values.to(self.device) - offset) / scale

    def see(self, request):
        width = self.record["widths"]["features"]
        if self.decoder.eye:
            side = self.decoder.eye.config["side"]
            images = [Image.fromarray(request[f"observation/{name}"]) for name in ("image", "wrist_image")]
            resized = [image if image.size == (side, side) else image.resize((side, side)) for image in images]
            return torch.tensor(np.stack([np.asarray(image) for image in resized]))
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
        if model.eye:
            read = torch.cat([model.eye(features)[0], model.seen_state(state)], 0)
            parts = [self.summaries(model.term, program[0], read)]
        else:
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


    def summaries(self, term, program, read):
        """A term after what the eye sees and the state, as [1, summaries, width]."""
        rows = torch.cat([read, term.tokens(program), term.summaries + term.tokens.weight[0]])
        seen = term.transformer((rows + term.place[: len(rows)])[None])
        return term.out(seen[:, -len(term.summaries) :])


def load(folder, build, device):
    path = folder / "model.safetensors"
    with safe_open(path, "pt") as file:
        record = json.loads(file.metadata()["run"])["config"]["metadata"]
    weights = load_file(path)
    model = build(record, {key: len(value) for key, value in weights.items()})
    eye = record["model"]["config"].get("eye")
    of_eye = {key.removeprefix("eye."): weights.pop(key) for key in list(weights) if key.startswith("eye.")}
    # What reads and writes the numbers of programs: less work for the twin.
    weights = {key: value for key, value in weights.items() if "numbers." not in key}
    model.load_state_dict(weights)
    model.eye = Eye(eye, of_eye, device) if eye else None
    return model.eval(), record


def sizes(record, kind):
    """The sizes of a head, without what changes nothing for the twin."""
    config = record["model"]["config"]
    return kind(**{key: config[key] for key in kind.__dataclass_fields__})


def emitter(record, lengths):
    widths, config = record["widths"], sizes(record, EmitterConfig)
    vocabulary = len(record["model"]["vocabulary"])
    eye = record["model"]["config"].get("eye")
    features = widths["features"]
    if eye:
        config.feature_tokens = eye["cameras"] * (eye["grid"] ** 2 + (eye["keypoints"] > 0))
        features = config.feature_tokens * config.width
    model = Emitter(config, features, widths["states"], lengths["words.weight"], vocabulary)
    if eye:
        model.features = torch.nn.Identity()
    return model


def decoder(record, lengths):
    widths, config = record["widths"], sizes(record, DecoderConfig)
    vocabulary = len(record["model"]["vocabulary"])
    eye, blind = (record["model"]["config"].get(key) for key in ("eye", "blind"))
    features = 0 if eye or blind else widths["features"]
    model = Decoder(config, features, widths["states"], widths["actions"], vocabulary)
    model.term.place = torch.nn.Parameter(torch.empty(lengths["term.place"], config.term_width))
    if eye:
        model.seen_state = torch.nn.Linear(widths["states"], config.term_width)
    return model


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
