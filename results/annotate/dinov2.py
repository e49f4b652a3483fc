"""Frozen DINOv2 features of a camera's pictures, for the baseline of uvd.py.

usage: dinov2.py DATASET --weights DIR --out FILE.npz [--camera KEY] [--rate HZ] [--rounds FIRST:LAST] [--size PIXELS]

Pictures are decoded with PyAV (videos) or Pillow (pictures in the parquet files), resized to a multiple of 14 and encoded
by Hugging Face's implementation. The file has for each episode the rows that were encoded, the class token and the mean of
the patch tokens. Episodes of our LIBERO sets are ordered in rounds of one episode for each task; `--rounds 3:6` encodes
rounds 4 to 6. Needs numpy, pandas, pyarrow, pillow, av, torch and transformers.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from transformers import Dinov2Model

from pictures import camera_of, episodes_of, pictures_of

MEAN, STD = np.array([0.485, 0.456, 0.406], "f4"), np.array([0.229, 0.224, 0.225], "f4")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--camera", help="default: the first one")
    parser.add_argument("--rate", type=float, default=10.0, help="pictures per second")
    parser.add_argument("--rounds", default="0:1000000", help="rounds of episodes, such as 3:6")
    parser.add_argument("--size", type=int, default=126, help="side in pixels, a multiple of 14")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    info = json.loads((options.dataset / "meta" / "info.json").read_text())
    camera = options.camera or camera_of(info)
    stride = max(1, round(info["fps"] / options.rate))
    first, last = (int(part) for part in options.rounds.split(":"))
    tasks = info["total_tasks"]
    model = Dinov2Model.from_pretrained(options.weights, torch_dtype=torch.float32).eval().to(options.device)
    kept = {}
    for _, episode in episodes_of(options.dataset).iterrows():
        index, length = int(episode.episode_index), int(episode.length)
        if not first <= index // tasks < last:
            continue
        rows = list(range(0, length, stride))
        pictures = pictures_of(options.dataset, index, rows, camera)
        side = (options.size, options.size)
        pixels = np.stack([np.asarray(one.resize(side, Image.BICUBIC), "f4") / 255 for one in pictures])
        assert len(pixels) == len(rows), (index, len(pixels), len(rows))
        pixels = torch.from_numpy(((pixels - MEAN) / STD).transpose(0, 3, 1, 2)).to(options.device)
        with torch.inference_mode():
            tokens = torch.cat([model(batch).last_hidden_state.cpu() for batch in pixels.split(32)]).numpy()
        kept[f"{index}/rows"] = np.array(rows)
        kept[f"{index}/cls"] = tokens[:, 0].astype("f2")
        kept[f"{index}/mean"] = tokens[:, 1:].mean(1).astype("f2")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(options.out, camera=camera, **kept)


if __name__ == "__main__":
    main()
