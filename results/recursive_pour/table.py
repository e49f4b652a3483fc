#!/usr/bin/env python3
"""Prints reports of `eval recursive-pour --json` as one table, every error in the reward scale `depth`.

An error in litres at depth d, divided by d, is the error in that scale whichever scale the model was trained in. The last
column is the largest ratio of an η_d to the paper's: at 1 or below, every η_d is at most the paper's.
"""

import json
import sys
from pathlib import Path

PAPER = [0.111, 0.146, 0.146, 0.205]


def mean(values):
    return sum(values) / len(values)


def depths(litres):
    return [error / depth for depth, error in enumerate(litres, 1)]


def line(name, etas, sup, average):
    cells = [f"{eta:.3f}" for eta in etas] + [f"{sup:.3f}", average, f"{max(e / p for e, p in zip(etas, PAPER)):.2f}"]
    return f"| {name} | " + " | ".join(cells) + " |"


def main(paths):
    print("| run | η_1 | η_2 | η_3 | η_4 | η_sup | mean | η_d / paper's, at most |\n|---|---|---|---|---|---|---|---|")
    for path in paths:
        report = json.loads(Path(path).read_text())
        if path == paths[0] and report["reward_scale"] == "depth":
            constant = report["constant"]
            print(line("constant", constant["by_depth"], constant["sup"], f"{constant['mean']:.4f}"))
        by_seed = [depths(seed["litres"]["by_depth"]) for seed in report["seeds"]]
        etas = [mean(values) for values in zip(*by_seed)]
        own = report["reward_scale"] == "depth"
        average = f"{report['demonstrated']['mean']['mean']:.4f}" if own else "-"
        print(line(Path(path).stem, etas, mean([max(etas) for etas in by_seed]), average))


if __name__ == "__main__":
    main(sys.argv[1:])
