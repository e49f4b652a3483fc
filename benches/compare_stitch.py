#!/usr/bin/env python3
"""Our compressor against Stitch, side by side in one run: cost, CPU time and memory.

For every corpus, arity and number of rounds, the peer (PyPI package stitch_core) and our release binary run in turn, each in
a process of its own, with one thread; ours also runs with two. The least of several repetitions counts. Ratios are ours over
the peer's *less a baseline*: a Python process with the same imports that reads the same file and compresses nothing. Ours
is never reduced. The costs of both sides are counted again here from the rewritten programs and the bodies, and our
rewritten programs are inlined and compared with the corpus.

Exit code 1 if a row is worse than the peer in cost, time or memory, or if a result is wrong.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from measuring import (
    BINARY,
    ROOT,
    best,
    binary_or_exit,
    cost,
    dated,
    geometric_mean,
    inlined,
    machine,
    measure_ours,
    measure_peer,
    peer_or_exit,
    revision,
    table,
    write_json,
)

CORPORA = ["nuts-bolts", "dials", "furniture", "wheels", "bridge", "house"]
GOALS = {"cpu": 1 / 5, "memory": 1 / 4}


def main():
    arguments = parse_arguments()
    paths = [arguments.corpora / f"{name}.json" for name in arguments.only]
    missing = [path.name for path in paths if not path.exists()]
    if missing:
        print(f"skipped: {arguments.corpora} has no {', '.join(missing)}; give the folder with --corpora")
        return 0
    version = peer_or_exit()
    binary = binary_or_exit(arguments.binary)
    reference = {
        (row["corpus"], row["max_arity"], row["rounds"]): row
        for row in json.loads((ROOT / "benches" / "stitch_reference.json").read_text())["rows"]
    }
    settings = [(arity, rounds) for arity in arguments.arities for rounds in arguments.rounds]
    rows = []
    for path in paths:
        for arity, rounds in settings:
            print(f"{path.stem} arity {arity} rounds {rounds} …", file=sys.stderr, flush=True)
            row = compare(binary, path, arity, rounds, arguments.repetitions)
            row["reference"] = reference.get((path.stem, arity, rounds))
            row["problems"] += problems(row)
            rows.append(row)
    means = {name: geometric_mean(row[name] for row in rows if row.get(name)) for name in RATIOS}
    report(rows, means, version, arguments.repetitions)
    if not arguments.dry_run:
        result = {
            "peer": f"stitch_core {version}",
            "revision": revision(),
            "machine": machine(),
            "repetitions": arguments.repetitions,
            "ratios": "ours / (peer - baseline), and ours / peer for the whole processes",
            "geometric_means": means,
            "rows": rows,
        }
        write_json(dated("compare_stitch", "json"), result)
    return 1 if any(row["problems"] for row in rows) else 0


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--corpora", type=Path, default=ROOT.parent / "shared" / "corpora" / "cogsci",
                        help="folder with Stitch's cogsci corpora [default: ../shared/corpora/cogsci beside the repository]")
    parser.add_argument("--binary", type=Path, default=BINARY, help="our binary [default: target/release/refactor-vla]")
    parser.add_argument("--repetitions", type=int, default=3, help="runs of each side; the least counts [default: 3]")
    parser.add_argument("--only", nargs="+", choices=CORPORA, default=CORPORA, help="only these corpora")
    parser.add_argument("--arities", nargs="+", type=int, default=[2, 3])
    parser.add_argument("--rounds", nargs="+", type=int, default=[3, 10])
    parser.add_argument("--dry-run", action="store_true", help="write no result file")
    return parser.parse_args()


RATIOS = ["cpu_ratio", "memory_ratio", "cpu_ratio_whole", "memory_ratio_whole", "speedup_of_2_threads"]


def compare(binary, path, arity, rounds, repetitions):
    """One row of the comparison."""
    runs = {"baseline": [], "peer": [], "ours": [], "ours_2_threads": []}
    with tempfile.TemporaryDirectory() as folder:
        outs = {side: Path(folder) / f"{side}.json" for side in runs}
        for _ in range(repetitions):
            runs["baseline"].append(measure_peer(path, arity, 0, outs["baseline"]))
            runs["peer"].append(measure_peer(path, arity, rounds, outs["peer"]))
            runs["ours"].append(measure_ours(binary, path, arity, rounds, outs["ours"]))
            runs["ours_2_threads"].append(measure_ours(binary, path, arity, rounds, outs["ours_2_threads"], threads=2))
        runs = {side: best(measured) for side, measured in runs.items()}
        row = {"corpus": path.stem, "max_arity": arity, "rounds": rounds, "problems": []}
        for side, run in runs.items():
            row[side] = {"cpu_s": round(run.cpu, 4), "wall_s": round(run.wall, 4), "peak_mb": round(run.peak, 2)}
            if run.status != 0:
                row["problems"].append(f"{side} failed ({run.status}): {run.stderr.strip()[-500:]}")
        if row["problems"]:
            return row
        programs = json.loads(path.read_text())
        results = {side: json.loads(outs[side].read_text()) for side in ("peer", "ours", "ours_2_threads")}
    for side in ("peer", "ours"):
        row[side] |= recounted(programs, results[side], side, row["problems"])
    for key in ("rewritten", "abstractions"):
        if results["ours"][key] != results["ours_2_threads"][key]:
            row["problems"].append(f"one and two threads give different `{key}`")
    peer, ours, baseline = runs["peer"], runs["ours"], runs["baseline"]
    # A peer that needs next to nothing beyond its baseline counts as one millisecond and one tenth of a megabyte.
    row["cpu_ratio"] = ours.cpu / max(peer.cpu - baseline.cpu, 1e-3)
    row["memory_ratio"] = ours.peak / max(peer.peak - baseline.peak, 0.1)
    row["cpu_ratio_whole"] = ours.cpu / peer.cpu
    row["memory_ratio_whole"] = ours.peak / peer.peak
    row["speedup_of_2_threads"] = ours.wall / runs["ours_2_threads"].wall
    return row


def recounted(programs, result, side, problems):
    """The costs of a result, counted here; differences to what the side itself says are problems."""
    final = sum(map(cost, result["rewritten"]))
    library = sum(cost(abstraction["body"]) for abstraction in result["abstractions"])
    said = {"final_cost": final, "library_cost": library, "original_cost": sum(map(cost, programs))}
    for name, counted in said.items():
        if name in result and abs(result[name] - counted) > 1e-6:
            problems.append(f"{side} says {name} {result[name]}, but it is {counted}")
    definitions = {abstraction["name"]: (abstraction["arity"], abstraction["body"]) for abstraction in result["abstractions"]}
    has_lambda = any("(lam" in text for text in programs)
    if not has_lambda and [inlined(text, {}) for text in programs] != [
        inlined(text, definitions) for text in result["rewritten"]
    ]:
        problems.append(f"{side}: inlining the library does not give back the corpus")
    return {"final": final, "library": library, "total": final + library, "abstractions": len(definitions)}


def problems(row):
    """What is worse than the peer, in this run or in its reference results."""
    if "final" not in row["ours"]:
        return []
    found = []
    ours, peer, reference = row["ours"], row["peer"], row["reference"]
    for name in ("final", "total"):
        if ours[name] > peer[name]:
            found.append(f"{name} {ours[name]} is worse than the peer's {peer[name]}")
    if reference:
        total = reference["final"] + reference["library"]
        if ours["final"] > reference["final"] or ours["total"] > total:
            found.append(f"worse than the reference: final {reference['final']}, total {total}")
    for name in ("cpu_ratio", "memory_ratio"):
        if row[name] > 1:
            found.append(f"{name} {row[name]:.2f}")
    return found


def report(rows, means, version, repetitions):
    """Prints the table and what it comes to."""
    header = ["corpus", "arity", "rounds", "final", "peer", "total", "peer", "CPU s", "peer", "ratio", "whole", "MB", "peer",
              "ratio", "whole", "2 thr.", ""]
    lines = []
    for row in rows:
        ours, peer, baseline = row["ours"], row["peer"], row["baseline"]
        if "final" not in ours:
            lines.append([row["corpus"], row["max_arity"], row["rounds"]] + [""] * 13 + ["failed"])
            continue
        lines.append([
            row["corpus"], row["max_arity"], row["rounds"],
            ours["final"], peer["final"], ours["total"], peer["total"],
            f"{ours['cpu_s']:.3f}", f"{peer['cpu_s'] - baseline['cpu_s']:.3f}",
            f"{row['cpu_ratio']:.3f}", f"{row['cpu_ratio_whole']:.3f}",
            f"{ours['peak_mb']:.1f}", f"{peer['peak_mb'] - baseline['peak_mb']:.1f}",
            f"{row['memory_ratio']:.3f}", f"{row['memory_ratio_whole']:.3f}",
            f"{row['speedup_of_2_threads']:.2f}x",
            verdict(row),
        ])
    print(f"stitch_core {version}, one thread, least of {repetitions}; the peer's CPU and MB are less its baseline,"
          " `whole` compares whole processes\n")
    print(table(header, lines))
    print("\ngeometric means")
    for name in RATIOS:
        kind = name.split("_")[0]
        goal = f"  goal {GOALS[kind]:.2f} {'met' if means[name] <= GOALS[kind] else 'MISSED'}" if name in (
            "cpu_ratio", "memory_ratio") else ""
        print(f"  {name:<22} {means[name]:.3f}{goal}")
    for row in rows:
        for problem in row["problems"]:
            print(f"problem: {row['corpus']} arity {row['max_arity']} rounds {row['rounds']}: {problem}")


def verdict(row):
    """The outcome of a row in a word."""
    if row["problems"]:
        return "WORSE"
    better = row["ours"]["final"] < row["peer"]["final"] and row["ours"]["total"] < row["peer"]["total"]
    return "better" if better else "equal or better"


if __name__ == "__main__":
    sys.exit(main())
