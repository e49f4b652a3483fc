#!/usr/bin/env python3
"""Prints the measured columns of RESULTS.md again, from the JSON files of this directory.

    python3 results/paper.py
"""

import json
import statistics
from pathlib import Path

HERE = Path(__file__).parent
SUITES = ["object", "spatial", "goal", "10"]


def mean(values):
    """Mean and standard deviation over seeds."""
    if len(values) < 2:
        return f"{values[0]:.3f}"
    return f"{statistics.mean(values):.3f} ± {statistics.stdev(values):.3f}"


def table(title, headings, rows):
    print(f"\n{title}\n")
    print("| " + " | ".join(headings) + " |")
    print("|" + "---|" * len(headings))
    for row in rows:
        print("| " + " | ".join(row) + " |")


def phase_c(suite):
    cells = json.loads((HERE / f"phase_c/libero_{suite}.json").read_text())["cells"]
    return {mode: sorted((c for c in cells if c["mode"] == mode), key=lambda c: c["seed"]) for mode in
            {c["mode"] for c in cells}}


def matrix():
    for target in ["task", "phase"]:
        rows = []
        for mode in ["task_index", "none", "supcon", "episode_contrast_direct"]:
            row = [mode]
            for suite in SUITES:
                row.append(mean([c["amortizer"]["kmeans"][target]["nmi"] for c in phase_c(suite)[mode]]))
            rows.append(row)
        table(f"matrix: NMI of k_χ against {target}", ["mode"] + SUITES, rows)


def lifts():
    rows = []
    for suite in SUITES:
        modes = phase_c(suite)
        row = [suite]
        for clusterer in ["kmeans", "hdbscan"]:
            both = [[c["amortizer"][clusterer]["task"]["nmi"] for c in modes[mode]] for mode in ["none", "supcon"]]
            row += [mean(both[0]), mean(both[1]), mean([b - a for a, b in zip(*both)])]
        rows.append(row)
    headings = ["suite", "none, KMeans", "supcon, KMeans", "lift", "none, HDBSCAN", "supcon, HDBSCAN", "lift"]
    table("clusterer: NMI of k_χ against task; lifts are paired by seed", headings, rows)


def direct():
    rows = []
    for suite in SUITES:
        cells = phase_c(suite)["supcon"]
        k, z = ([c[kind]["kmeans"]["task"]["nmi"] for c in cells] for kind in ["amortizer", "world_model"])
        rows.append([suite, mean(z), mean(k), mean([a - b for a, b in zip(z, k)])])
    table("ablate A5: NMI against task with supcon; gaps are paired by seed", ["suite", "z_T", "k_χ", "gap"], rows)


def wake():
    rows = []
    for suite in SUITES:
        runs = [json.loads((HERE / f"loop/libero_{suite}-{seed}.json").read_text()) for seed in range(3)]
        arms = [next(arm for arm in run["arms"] if arm["name"] == "with library") for run in runs]
        value = lambda name: mean([next(m["value"] for m in arm["measures"] if m["name"] == name) for arm in arms])
        share = mean([arm["rewriting"]["rewritten"] / arm["rewriting"]["demonstrations"] for arm in arms])
        used = ", ".join(f"{arm['rewriting']['entries_used']} of {arm['rewriting']['entries']}" for arm in arms)
        rows.append([suite, value("token accuracy"), value("velocity error, oracle programs"), share, used])
    table("wake, with library", ["suite", "token accuracy", "velocity error", "rewritten", "entries used"], rows)


def untrained():
    """Rows of experiments that need no training, so that they do not depend on the preset they were run with."""
    rows = []
    for name, kinds in [("ablate", ["nmi_task", "nmi_phase", "boundary_f1", "entries", "relative_length"]),
                        ("library", ["entries", "nats"])]:
        for row in json.loads((HERE / f"paper/{name}.json").read_text())["rows"]:
            for kind in kinds:
                if kind in row["figures"]:
                    ours = row["figures"][kind]["ours"]
                    low, high = ours["interval"] or (None, None)
                    interval = f"[{low:.3f}, {high:.3f}]" if ours["interval"] else ""
                    std = f" ± {ours['std']:.3f}" if ours["std"] is not None else ""
                    rows.append([row["dataset"], row["row"], kind, f"{ours['mean']:.3f}{std}", interval])
    table("ablate A1, A3, A4, and library: rows without training", ["suite", "row", "figure", "value", "interval"], rows)


def bounds():
    pour = json.loads((HERE / "recursive_pour/h200.json").read_text())
    sup, average = (pour["demonstrated"][key] for key in ["sup", "mean"])
    bound = lambda eta, discount: (0.05 + 2 * eta) / (1 - discount)
    rows = [
        ["Lemma 1, γ = 0.99", f"{bound(sup['mean'], 0.99):.1f}"],
        ["Lemma 1, γ = 0.95", f"{bound(sup['mean'], 0.95):.1f}"],
        ["Lemma 1′, γ = 0.95", f"{bound(average['mean'], 0.95):.2f}"],
        ["Lemma 1″, γ = 0.95, H = 50, σ = mean error", f"{50 ** 0.5 * average['mean'] / 0.05:.1f}"],
    ]
    table(f"theory: η_sup = {sup['mean']:.3f}, mean error {average['mean']:.4f}", ["bound", "value"], rows)


if __name__ == "__main__":
    matrix()
    lifts()
    direct()
    wake()
    untrained()
    bounds()
