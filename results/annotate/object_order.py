"""In which order two objects were handled, from where they were grasped.

usage: object_order.py BDDL_FOLDER DATASET… > results/annotate/object_order.json

The scripted expert of LIBERO's `put both A and B in the basket` takes the objects in either order, and no column of the
dataset says in which. The placement regions of the objects in LIBERO's own task files (BDDL) do not overlap, so the state at
the start of each `grasp` says which object is grasped: the one whose region is nearest. Only instructions with two or more
objects that have regions are listed. BDDL_FOLDER is `libero/libero/bddl_files` of the package `hf-libero`.
The synthetic aloha's instruction about two cubes is not understood by the parser, so its order is written down here as its
script has it (`crates/dataset/src/synthetic/robots/aloha.rs`). Needs numpy, pandas and pyarrow.
"""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd

# How the task files call things that instructions call otherwise.
NAMES = {"porcelain_mug": "white mug", "white_yellow_mug": "yellow and white mug", "cream_cheese": "cream cheese box"}


def regions(text):
    """The centre of the region in which each object starts."""
    centres = {}
    for name, low_x, low_y, high_x, high_y in re.findall(
        r"\((\w+)\s*\(:target \w+\)\s*\(:ranges \(\s*\(([-\d.e]+) ([-\d.e]+) ([-\d.e]+) ([-\d.e]+)\)", text
    ):
        centres[name] = np.array([(float(low_x) + float(high_x)) / 2, (float(low_y) + float(high_y)) / 2])
    placed = re.findall(r"\(On (\w+)_\d+ (\w+)\)", text[text.index("(:init") : text.index("(:goal")])
    return {thing: centres[name] for thing, place in placed for name in centres if place.endswith("_" + name)}


def wanted(text):
    """The objects of the goal."""
    return [name for _, name in re.findall(r"\((On|In) (\w+?)_\d+ ", text[text.index("(:goal") :])]


def main():
    folder, orders = Path(sys.argv[1]), {}
    for root in map(Path, sys.argv[2:]):
        tasks = pd.read_parquet(root / "meta" / "tasks.parquet")
        names = json.loads((root / "meta" / "phases.json").read_text())["names"]
        rows = pd.concat([pd.read_parquet(part) for part in sorted((root / "data").rglob("*.parquet"))])
        for instruction, task in zip(tasks.index, tasks.task_index):
            files = sorted((folder / root.name).glob("*" + instruction.replace(" ", "_") + ".bddl"))
            if not files:
                continue
            text = files[0].read_text()
            places = {name: place for name, place in regions(text).items() if name in wanted(text)}
            if len(places) < 2:
                continue
            for episode, own in rows[rows.task_index == task].groupby("episode_index"):
                grasp = own.phase.to_numpy() == names.index("grasp")
                starts = np.flatnonzero(grasp & ~np.roll(grasp, 1))
                states = np.stack(own["observation.state"].to_numpy())
                order = []
                for start in starts:
                    distances = {name: np.linalg.norm(states[start, :2] - place) for name, place in places.items()}
                    nearest, second = sorted(distances, key=distances.get)[:2]
                    assert distances[nearest] < 0.7 * distances[second], (root.name, episode, distances)
                    order.append(NAMES.get(nearest, nearest.replace("_", " ")))
                orders.setdefault(root.name, {})[str(episode)] = order
    # One episode in four, of the five episodes for each of four tasks that `data synth aloha` makes.
    orders["aloha"] = {str(episode): ["yellow cube", "green cube"] for episode in range(3, 20, 4)}
    json.dump(orders, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
