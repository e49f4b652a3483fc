#!/usr/bin/env python3
"""Our clustering against scikit-learn's, side by side in one run: KMeans, HDBSCAN, and scores, from 1 thousand to 100 thousand points.

Points are 64-dimensional and single precision, around 20 centres of unequal spread that overlap. Both sides stay alive in a
process of their own, have read the same files, and answer one question at a time, in turn; only the call is timed, by the
process that makes it. A first round warms both up and does not count; the median of the others does. Ratios are theirs over
ours: 2 is twice as fast. On a machine that does other things besides, ratios of CPU time say more than those of time, above
all with `--threads 1`: threads that wait for each other by spinning are counted as work. Exit code 1 if a row is slower, or a result is worse.

    kmeans      k = 10, ten restarts on both sides; the inertia must be no more than scikit-learn's, as the mean over
                repetitions, each with a seed of its own. `kmeans plain` is ours without swaps of centres, which scikit-learn
                has not, for time only.
    hdbscan     min_cluster_size 10, min_samples 5; labels must be the same but for names. scikit-learn's own choice of
                algorithm (a k-d tree, then Prim). Up to 10 thousand points: it is quadratic, and scikit-learn would need
                a quarter of an hour and more for 100 thousand.
    nmi, ami, ari   true classes against labels of which 30 % are wrong; values must agree to 1e-9.
    silhouette  of the true classes; at 100 thousand points both sides take the same first 20 thousand. scikit-learn keeps
                distances in single precision, so values must agree to 1e-6 only; `tests/clustering/golden.rs` holds them to
                1e-9 in double precision.
"""

import argparse
import importlib.metadata
import importlib.util
import json
import os
import select
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from measuring import ROOT, dated, geometric_mean, machine, revision, shown, table, write_json

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
WIDTH = 64
SILHOUETTE = 20_000

PEER = """
import json, sys, time, warnings
import numpy as np
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.metrics import (adjusted_mutual_info_score, adjusted_rand_score, normalized_mutual_info_score,
                             silhouette_score)
warnings.filterwarnings("ignore")
points = np.fromfile(sys.argv[1], "<f4").reshape(-1, int(sys.argv[2]))
labels, others = (np.fromfile(path, "<i8") for path in sys.argv[3:5])
def kmeans(clusters, restarts, swaps, seed):
    found = KMeans(clusters, n_init=restarts, random_state=seed).fit(points)
    centres, nearest = found.cluster_centers_.astype("f8"), found.labels_
    return lambda: {"inertia": float(((points.astype("f8") - centres[nearest]) ** 2).sum()), "iterations": found.n_iter_}
def hdbscan(size, samples):
    found = HDBSCAN(min_cluster_size=size, min_samples=samples, copy=True).fit(points)
    return lambda: {"clusters": int(found.labels_.max() + 1), "labels": found.labels_.tolist()}
def score(function, *arguments):
    value = float(function(*arguments))
    return lambda: {"score": value}
measures = {
    "kmeans": kmeans, "hdbscan": hdbscan,
    "nmi": lambda: score(normalized_mutual_info_score, labels, others),
    "ami": lambda: score(adjusted_mutual_info_score, labels, others),
    "ari": lambda: score(adjusted_rand_score, labels, others),
    "silhouette": lambda: score(silhouette_score, points, labels),
}
for line in sys.stdin:
    name, *settings = line.split()
    started, worked = time.perf_counter(), time.process_time()
    answer = measures[name](*map(int, settings))
    seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - worked
    print(json.dumps({**answer(), "seconds": seconds, "cpu_seconds": cpu_seconds}), flush=True)
"""


def main():
    arguments = parse_arguments()
    if importlib.util.find_spec("sklearn") is None:
        sys.exit("error: the peer is not installed\nhint: python3 -m venv target/bench && target/bench/bin/pip install "
                 "scikit-learn, then run this script with target/bench/bin/python")
    if not os.access(arguments.binary, os.X_OK):
        sys.exit(f"error: no program at {shown(arguments.binary)}\n"
                 "hint: cargo build --release -p clustering --example time_clustering, or give --binary")
    if arguments.threads:
        for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"):
            os.environ[variable] = str(arguments.threads)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for count in arguments.sizes:
            files = write_points(Path(folder), count)
            for measure, limit in measures(count, arguments):
                print(f"{count} points, {measure} …", file=sys.stderr, flush=True)
                cut = SILHOUETTE if measure == "silhouette" and count > SILHOUETTE else None
                used = write_points(Path(folder), count, cut) if cut else files
                rows.append({"points": count, **compare(measure, used, limit, arguments), **({"first": cut} if cut else {})})
    report(rows)
    if not arguments.dry_run:
        write_json(dated(arguments.name, "json"), {
            "peer": {name: importlib.metadata.version(name) for name in ("scikit-learn", "numpy", "scipy")},
            "revision": revision(),
            "machine": machine(),
            "load_average": os.getloadavg(),
            "repetitions": arguments.repetitions,
            "threads": arguments.threads or os.cpu_count(),
            "ratios": "median seconds of scikit-learn / ours",
            "geometric_mean": geometric_mean(row["ratio"] for row in rows if row.get("ratio")),
            "rows": rows,
        })
    return 1 if any(row["problems"] for row in rows) else 0


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--sizes", nargs="+", type=int, default=[1_000, 10_000, 100_000], help="numbers of points")
    parser.add_argument("--binary", type=Path, default=TARGET / "release" / "examples" / "time_clustering",
                        help="our example [default: target/release/examples/time_clustering]")
    parser.add_argument("--only", nargs="+", help="measures, by their names")
    parser.add_argument("--repetitions", type=int, default=5, help="rounds that count [default: 5]")
    parser.add_argument("--patience", type=float, default=180, help="seconds for one answer [default: 180]")
    parser.add_argument("--threads", type=int, help="threads of each side [default: all cores]")
    parser.add_argument("--name", default="compare_scikit", help="what the result file is called")
    parser.add_argument("--dry-run", action="store_true", help="write no result file")
    return parser.parse_args()


def measures(count, arguments):
    """What is asked of both sides at a size, and how often at most: what takes long is asked less."""
    names = {
        "nmi": None, "ami": None, "ari": None,
        "kmeans": None if count <= 10_000 else 3, "kmeans plain": None if count <= 10_000 else 3,
        "silhouette": None if count <= 1_000 else 1, "hdbscan": None if count <= 1_000 else 1,
    }
    if count > 10_000:
        del names["hdbscan"]
    return [(name, limit) for name, limit in names.items() if not arguments.only or name in arguments.only]


def compare(measure, files, limit, arguments):
    """One measure at one size."""
    repetitions = min(arguments.repetitions, limit or arguments.repetitions)
    command = [*map(str, (files[0], WIDTH, *files[1:]))]
    sides = {"peer": Side([sys.executable, "-c", PEER, *command]), "ours": Side([str(arguments.binary), *command])}
    answers = {"peer": [], "ours": []}
    problems = []
    try:
        for repetition in range(0 if limit != 1 else 1, repetitions + 1):
            for name, side in sides.items():
                question = {"kmeans": f"kmeans 10 10 32 {repetition}", "kmeans plain": f"kmeans 10 10 0 {repetition}",
                            "hdbscan": "hdbscan 10 5"}.get(measure, measure)
                answer = side.ask(question, arguments.patience)
                if answer is None:
                    problems.extend([f"no answer in {arguments.patience:.0f} s"] if name == "ours" else [])
                elif repetition > 0:
                    answers[name].append(answer)
    finally:
        for side in sides.values():
            side.close()
    row = {"measure": measure, "repetitions": repetitions, "problems": problems}
    for name, given in answers.items():
        row[name] = {"seconds": [answer["seconds"] for answer in given]}
        if given:
            row[name]["median"] = statistics.median(row[name]["seconds"])
            row[name]["median_cpu"] = statistics.median(answer["cpu_seconds"] for answer in given)
    judge(row, measure, answers, arguments.patience)
    return row


def judge(row, measure, answers, patience):
    """Puts ratio, results and what is wrong with them into a row."""
    peer, ours = answers["peer"], answers["ours"]
    if not ours:
        return
    if not peer:
        row["peer"]["gave_up_after"] = patience
        row["ratio_at_least"] = patience / row["ours"]["median"]
        return
    row["ratio"] = row["peer"]["median"] / row["ours"]["median"]
    row["cpu_ratio"] = row["peer"]["median_cpu"] / row["ours"]["median_cpu"]
    if row["ratio"] < 1:
        row["problems"].append("slower")
    if measure.startswith("kmeans"):
        for name, given in answers.items():
            row[name]["mean_inertia"] = statistics.mean(answer["inertia"] for answer in given)
        if measure == "kmeans" and row["ours"]["mean_inertia"] > row["peer"]["mean_inertia"]:
            row["problems"].append("inertia is worse")
    elif measure == "hdbscan":
        for name, given in answers.items():
            row[name]["clusters"] = given[0]["clusters"]
        row["labels_that_differ"] = differing(ours[0]["labels"], peer[0]["labels"])
        if row["labels_that_differ"]:
            row["problems"].append(f"{row['labels_that_differ']} labels differ")
    else:
        for name, given in answers.items():
            row[name]["score"] = given[0]["score"]
        if abs(ours[0]["score"] - peer[0]["score"]) > (1e-6 if measure == "silhouette" else 1e-9):
            row["problems"].append("scores differ")


class Side:
    """A process that answers questions."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, question, patience):
        """The answer, or None if it takes too long; then the process is killed and answers no more."""
        if self.process.poll() is not None:
            return None
        print(question, file=self.process.stdin, flush=True)
        if not select.select([self.process.stdout], [], [], patience)[0]:
            self.process.kill()
            self.process.wait()
            return None
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"error: no answer to `{question}`, exit code {self.process.wait()}")
        return json.loads(line)

    def close(self):
        self.process.kill()
        self.process.wait()


def write_points(folder, count, first=None):
    """Points around 20 centres, their classes, and labels that are wrong for 30 % of them; the `first` of them only."""
    import numpy as np

    random = np.random.default_rng(count)
    centres, spread = random.normal(size=(20, WIDTH)), random.uniform(0.6, 1.4, size=20)
    classes = random.integers(20, size=count)
    points = centres[classes] + random.normal(size=(count, WIDTH)) * spread[classes, None]
    wrong = np.where(random.random(count) < 0.3, random.integers(20, size=count), classes)
    paths = [folder / f"{count}-{first or count}.{kind}" for kind in ("f32", "classes", "labels")]
    for path, values, kind in zip(paths, (points, classes, wrong), ("<f4", "<i8", "<i8")):
        values[:first].astype(kind).tofile(path)
    return paths


def differing(ours, theirs):
    """How many labels differ under a renaming, one to one and noise to noise."""
    there, back = {-1: -1}, {-1: -1}
    return sum(there.setdefault(a, b) != b or back.setdefault(b, a) != a for a, b in zip(ours, theirs))


def report(rows):
    """Prints what was measured."""
    lines = []
    for row in rows:
        median = lambda side: f"{row[side]['median'] * 1e3:,.2f}" if "median" in row[side] else "—"
        given_up = f"> {row['peer'].get('gave_up_after', 0):.0f} s"
        ratio = f"{row['ratio']:.1f}" if "ratio" in row else f"> {row.get('ratio_at_least', 0):.1f}"
        result = {side: next((f"{row[side][key]:.6g}" for key in ("mean_inertia", "score", "clusters") if key in row[side]), "")
                  for side in ("peer", "ours")}
        peer = median("peer") if "median" in row["peer"] else given_up
        cpu = f"{row['cpu_ratio']:.1f}" if "cpu_ratio" in row else ""
        lines.append([row["measure"], f"{row['points']:,}", peer, median("ours"), ratio, cpu, result["peer"], result["ours"],
                      "; ".join(row["problems"])])
    print(f"scikit-learn {importlib.metadata.version('scikit-learn')}, load average {os.getloadavg()[0]:.1f} on"
          f" {os.cpu_count()} cores\n")
    print(table(["measure", "points", "scikit-learn ms", "ours ms", "ratio", "CPU ratio", "its result", "our result", ""], lines))


if __name__ == "__main__":
    sys.exit(main())
