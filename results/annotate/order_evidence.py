"""Whether states tell in which order `put both A and B …` was done, without labels. See README.md.

    refactor-vla annotate data/libero/libero_10 out --segments libero_10.csv
    python3 results/annotate/order_evidence.py data/libero/libero_10 libero_10.csv results/annotate/object_order.json

Where the two objects of an episode were grasped tells episodes of one order from those of the other: the vector from the
first grasp to the second one points one way or the opposite way. Which object is which follows from the width of the closed gripper and the
height of the grasp, which an object has in all tasks that name it. The true order is read only to count what is right.
"""

import csv
import itertools
import json
import re
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import pandas as pd

dataset, table, truth = Path(sys.argv[1]), sys.argv[2], json.load(open(sys.argv[3]))
frames = pd.concat(pd.read_parquet(file) for file in sorted(dataset.glob("data/**/*.parquet")))
tasks = {int(row.task_index): text for text, row in pd.read_parquet(dataset / "meta/tasks.parquet").iterrows()}
subtasks = defaultdict(list)
for row in csv.DictReader(open(table)):
    subtasks[int(row["episode"])].append(row)

# For each instruction: episode, places of both grasps, what is felt in both.
groups, objects = defaultdict(list), {}
for episode, own in frames.groupby("episode_index"):
    instruction = tasks[int(own.task_index.iloc[0])]
    both = re.fullmatch(r"put both the (.*) and the (.*) in the basket", instruction)
    if not both:
        continue
    states = np.stack(own["observation.state"].values)
    ends = [int(row["end"]) - 1 for row in subtasks[int(episode)] if row["name"].startswith("grasp")]
    if len(ends) != 2:
        print(f"episode {episode} has {len(ends)} grasps and is left out")
        continue
    held = [np.array([states[min(end + 6, len(states) - 1), 6:8] @ [1, -1], states[end, 2]]) for end in ends]
    groups[instruction].append((int(episode), [states[end, :3] for end in ends], held))
    objects[instruction] = both.groups()

# Which episodes have the same order: the sign along the principal axis of the differences.
signs, sides = {}, {}
for instruction, episodes in groups.items():
    differences = np.array([first - second for _, (first, second), _ in episodes])
    axis = np.linalg.svd(differences)[2][0]
    sign = np.sign(differences @ axis)
    signs[instruction] = sign
    agreement = np.linalg.norm((sign[:, None] * differences).sum(0)) / np.linalg.norm(differences, axis=1).sum()
    felt = [[held[side if one > 0 else 1 - side] for one, (_, _, held) in zip(sign, episodes)] for side in (0, 1)]
    sides[instruction] = [(np.median(side, 0), np.median(np.abs(side - np.median(side, 0)), 0)) for side in felt]
    print(f"{instruction}: {int((sign > 0).sum())} and {int((sign < 0).sum())} episodes, agreement {agreement:.3f}")
    for side, (median, _) in zip("12", sides[instruction]):
        print(f"    object {side}: gripper {1000 * median[0]:.2f} mm, height {1000 * median[1]:.1f} mm")

# Which object is which: the same object feels the same in all instructions.
names = list(groups)


def cost(flips):
    felt = defaultdict(list)
    for instruction, flip in zip(names, flips):
        for side in (0, 1):
            felt[objects[instruction][side ^ flip]].append(sides[instruction][side])
    pairs = (pair for all in felt.values() for pair in itertools.combinations(all, 2))
    return sum((((a - b) ** 2) / (s**2 + t**2 + 1e-8)).sum() for (a, s), (b, t) in pairs)


costs = {flips: cost(flips) for flips in itertools.product((0, 1), repeat=len(names))}
best, second = sorted(costs, key=costs.get)[:2]
print(f"cost of the best assignment {costs[best]:.1f}, of the next one {costs[second]:.1f}")
right = total = unchanged = 0
for instruction, flip in zip(names, best):
    for sign, (episode, _, _) in zip(signs[instruction], groups[instruction]):
        first = objects[instruction][(0 if sign > 0 else 1) ^ flip]
        true = truth[dataset.name][str(episode)][0]
        total, right, unchanged = total + 1, right + (first == true), unchanged + (objects[instruction][0] == true)
print(f"order right in {right} of {total} episodes; the order of the instruction is right in {unchanged}")
