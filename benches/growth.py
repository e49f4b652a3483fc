#!/usr/bin/env python3
"""How CPU time and memory grow with the corpus: ×1, ×2, ×4, ×8, ours and Stitch's.

Three constructions, because repeating a corpus is not growth: equal programs are one program under hash-consing.

  real      the six corpora in one without the programs that two of them share, shuffled with a fixed seed: the first
            eighth, quarter, half, and all of it. Nothing is made up, and every program is another one.
  renamed   copies of one corpus; in each copy but the first, half of its distinct numbers – another half in each copy,
            chosen by hash – are replaced by numbers that no other copy has. Shapes recur, constants do not.
  repeated  plain copies of one corpus, for the sake of completeness.

Size is the number of terminals, and the exponent is the slope of log(measure) over log(size): 1 is linear. Time and memory
of the peer are less its baseline (see compare_stitch.py); a run of the peer over the time limit is left out.
"""

import argparse
import hashlib
import json
import random
import re
import sys
import tempfile
from pathlib import Path

from compare_stitch import CORPORA
from growth_plot import plot
from measuring import (
    BINARY,
    ROOT,
    best,
    binary_or_exit,
    dated,
    exponent,
    machine,
    measure_ours,
    measure_peer,
    peer_or_exit,
    revision,
    table,
    write,
    write_json,
)

FACTORS = [1, 2, 4, 8]


def main():
    arguments = parse_arguments()
    missing = [name for name in CORPORA if not (arguments.corpora / f"{name}.json").exists()]
    if missing:
        print(f"skipped: {arguments.corpora} has no {', '.join(missing)}; give the folder with --corpora")
        return 0
    version = peer_or_exit()
    binary = binary_or_exit(arguments.binary)
    everything = {name: json.loads((arguments.corpora / f"{name}.json").read_text()) for name in CORPORA}
    base = everything[arguments.base]
    constructions = {
        "real": lambda factor: real(list(everything.values()), factor),
        "renamed": lambda factor: renamed(base, factor),
        "repeated": lambda factor: base * factor,
    }
    points = []
    for name, construct in constructions.items():
        for factor in FACTORS:
            print(f"{name} ×{factor} …", file=sys.stderr, flush=True)
            points += measured(binary, name, factor, construct(factor), arguments)
    fits = exponents(points)
    report(points, fits, version, arguments)
    if not arguments.dry_run:
        result = {
            "peer": f"stitch_core {version}",
            "revision": revision(),
            "machine": machine(),
            "max_arity": arguments.max_arity,
            "rounds": arguments.rounds,
            "base": arguments.base,
            "repetitions": arguments.repetitions,
            "constructions": {name: " ".join(text.split()) for name, text in described().items()},
            "exponents": fits,
            "points": points,
        }
        write_json(dated("growth", "json"), result)
        write(dated("growth", "svg"), plot(points, fits))
    return 0


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--corpora", type=Path, default=ROOT.parent / "shared" / "corpora" / "cogsci",
                        help="folder with Stitch's cogsci corpora [default: ../shared/corpora/cogsci beside the repository]")
    parser.add_argument("--binary", type=Path, default=BINARY, help="our binary [default: target/release/refactor-vla]")
    parser.add_argument("--base", choices=CORPORA, default="dials", help="the corpus that is copied [default: dials]")
    parser.add_argument("--max-arity", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--repetitions", type=int, default=2, help="runs of each side; the least counts [default: 2]")
    parser.add_argument("--limit", type=float, default=120, help="seconds that the peer may take [default: 120]")
    parser.add_argument("--dry-run", action="store_true", help="write no result file")
    return parser.parse_args()


def real(corpora, factor):
    """The first share of all corpora, shuffled."""
    programs = list(dict.fromkeys(program for corpus in corpora for program in corpus))
    random.Random(0).shuffle(programs)
    return programs[: len(programs) * factor // FACTORS[-1]]


def renamed(programs, factor):
    """Copies that share shapes but only half of their numbers."""

    def name_in(copy, number):
        digest = hashlib.sha256(f"{copy} {number}".encode()).digest()
        return number if copy == 0 or digest[0] < 128 else f"{number}{'' if '.' in number else '.'}0{copy}"

    numeric = re.compile(r"(?<=[\s(])-?\d+(\.\d+)?(?=[\s)])")
    return [
        numeric.sub(lambda found: name_in(copy, found.group()), program) for copy in range(factor) for program in programs
    ]


def measured(binary, name, factor, programs, arguments):
    """The points of both sides for one corpus."""
    arity, rounds = arguments.max_arity, arguments.rounds
    with tempfile.TemporaryDirectory() as folder:
        corpus, out = Path(folder) / "corpus.json", Path(folder) / "out.json"
        corpus.write_text(json.dumps(programs))
        ours, peer, baseline = [], [], []
        for _ in range(arguments.repetitions):
            ours.append(measure_ours(binary, corpus, arity, rounds, out))
            baseline.append(measure_peer(corpus, arity, 0, out))
            if not any(run.status for run in peer):
                peer.append(measure_peer(corpus, arity, rounds, out, limit=arguments.limit))
    ours, peer, baseline = best(ours), best(peer), best(baseline)
    if ours.status:
        sys.exit(f"error: our program failed on {name} ×{factor}: {ours.stderr}")
    size = sum(len(re.findall(r"[^\s()]+", program)) for program in programs)
    distinct = len(set(programs))
    where = {"construction": name, "factor": factor, "programs": len(programs), "distinct": distinct, "terminals": size}
    points = [where | {"side": "ours", "cpu_s": round(ours.cpu, 4), "peak_mb": round(ours.peak, 2)}]
    if peer.status:
        print(f"  the peer did not finish within {arguments.limit:g} s", file=sys.stderr)
    else:
        cpu, peak = max(peer.cpu - baseline.cpu, 1e-3), max(peer.peak - baseline.peak, 0.1)
        points.append(where | {"side": "peer", "cpu_s": round(cpu, 4), "peak_mb": round(peak, 2)})
    return points


def exponents(points):
    """The slope of each measure over the size on logarithmic scales, by least squares."""
    fits = {}
    for construction in dict.fromkeys(point["construction"] for point in points):
        for side in ("ours", "peer"):
            chosen = [p for p in points if p["construction"] == construction and p["side"] == side]
            for measure in ("cpu_s", "peak_mb"):
                if len(chosen) >= 3:
                    sizes, values = [point["terminals"] for point in chosen], [point[measure] for point in chosen]
                    fits[f"{side} {construction} {measure}"] = round(exponent(sizes, values), 3)
    return fits


def described():
    """The constructions in words, from the head of this file."""
    parts = re.split(r"\n  (?=\w)", "\n" + __doc__.split("\n\n")[2])
    return dict(part.split(maxsplit=1) for part in parts if part)


def report(points, fits, version, arguments):
    """Prints the points and the exponents."""
    print(f"stitch_core {version}, arity {arguments.max_arity}, {arguments.rounds} rounds, one thread, least of"
          f" {arguments.repetitions}; copies of {arguments.base}; the peer's CPU and MB are less its baseline\n")
    rows = {}
    for point in points:
        key = (point["construction"], point["factor"], point["programs"], point["distinct"], point["terminals"])
        rows.setdefault(key, {})[point["side"]] = (f"{point['cpu_s']:.3f}", f"{point['peak_mb']:.1f}")
    blank = ("–", "–")
    lines = []
    for key, sides in rows.items():
        (cpu, peak), (peer_cpu, peer_peak) = sides["ours"], sides.get("peer", blank)
        lines.append([key[0], f"×{key[1]}", *key[2:], cpu, peer_cpu, peak, peer_peak])
    print(table(["corpus", "", "programs", "distinct", "terminals", "CPU s", "peer", "MB", "peer"], lines))
    print("\nexponents (1 is linear)")
    constructions = list(dict.fromkeys(point["construction"] for point in points))
    lines = [
        [name] + [fits.get(f"{side} {name} {measure}", "–") for measure in ("cpu_s", "peak_mb") for side in ("ours", "peer")]
        for name in constructions
    ]
    print(table(["corpus", "CPU", "peer", "memory", "peer"], lines))


if __name__ == "__main__":
    sys.exit(main())
