"""Cuts by frozen visual features as in UVD (Zhang et al. 2024, "Universal Visual Decomposer"), for `eval annotate --peer`.

usage: uvd.py DATASET.npz… > results/annotate/uvd.json

The features are those of dinov2.py; each file has the name of its dataset. From the last frame backwards: the distance of all earlier frames to the present goal
frame is smoothed by a Gaussian kernel; the last local maximum that is far enough from the goal is where progress towards
it began, and becomes the next goal. The settings are a small grid around those of the published code (kernel width
γ = 0.08 per frame², 18 frames between goals). This is a reimplementation. Needs numpy.
"""

import itertools
import json
import sys
from pathlib import Path

import numpy as np

KINDS = ("cls", "mean")
LEAST = (0.3, 0.6, 0.9)  # seconds between goals
WIDTH = (0.1, 0.25)  # seconds, deviation of the kernel


def smooth(values, width):
    """The kernel regression of values at all places."""
    places = np.arange(len(values))
    weights = np.exp(-0.5 * ((places[:, None] - places[None]) / width) ** 2)
    return weights @ values / weights.sum(1)


def decompose(features, least, width):
    """The goals before the last one, as places in the features."""
    goal, goals = len(features) - 1, []
    while goal > least:
        curve = smooth(np.linalg.norm(features[: goal + 1] - features[goal], axis=1), width)
        inner = np.flatnonzero((curve[1:-1] > curve[:-2]) & (curve[1:-1] > curve[2:])) + 1
        far = [place for place in inner if goal - place > least and place > least]
        if not far:
            break
        goal = int(far[-1])
        goals.append(goal)
    return goals[::-1]


def main():
    grid = list(itertools.product(KINDS, LEAST, WIDTH))
    settings = [f"{kind} token, {least} s between goals, kernel {width} s" for kind, least, width in grid]
    cuts = {}
    for argument in sys.argv[1:]:
        data = np.load(argument)
        own = cuts.setdefault(Path(argument).stem, {})
        for episode in sorted({int(key.split("/")[0]) for key in data.files if "/" in key}):
            rows = data[f"{episode}/rows"]
            rate = 20 / (rows[1] - rows[0]) if len(rows) > 1 else 20.0  # our LIBERO sets have 20 frames per second
            lists = []
            for kind, least, width in grid:
                features = data[f"{episode}/{kind}"].astype("f4")
                lists.append([int(rows[place]) for place in decompose(features, least * rate, width * rate)])
            own[str(episode)] = lists
    json.dump({"name": "UVD on DINOv2", "settings": settings, "cuts": cuts}, sys.stdout)
    print()


if __name__ == "__main__":
    main()
