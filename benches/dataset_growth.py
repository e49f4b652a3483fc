#!/usr/bin/env python3
"""How opening, indexing and sampling grow with the size of a dataset, from one dataset's worth of frames to a hundred.

For each size, the example `write_walks` writes a dataset of state and action (21 000 frames for each dataset's worth), and the
example `load_speed` opens it, indexes its windows of 16 steps at stride 1 and draws random ones, each measure in a process of
its own; the best of several repetitions counts. Memory is the peak of the resident set over the columns' own size.

    cargo build --release -p dataset --examples
    python3 benches/dataset_growth.py
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from measuring import ROOT, dated, exponent, machine, revision, shown, table, write_json

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
SIZES = [1, 3, 10, 30, 100]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="datasets' worth of frames")
    parser.add_argument("--repetitions", type=int, default=3, help="runs of each measure; the best counts")
    parser.add_argument("--seconds", type=float, default=2.0, help="for how long windows are drawn")
    parser.add_argument("--dry-run", action="store_true", help="write no results")
    arguments = parser.parse_args()
    examples = TARGET / "release" / "examples"
    for name in ("write_walks", "load_speed"):
        if not os.access(examples / name, os.X_OK):
            sys.exit(f"error: no program at {shown(examples / name)}\nhint: cargo build --release -p dataset --examples")
    rows = [measure(size, examples, arguments) for size in arguments.sizes]
    growth = exponent([row["frames"] for row in rows], [row["open_seconds"] for row in rows])
    print(table(
        ["frames", "columns MB", "open s", "Mframes/s", "index ms", "peak / columns", "windows/s"],
        [[f"{row['frames']}", f"{row['column_bytes'] / 1e6:.1f}", f"{row['open_seconds']:.3f}",
          f"{row['frames'] / row['open_seconds'] / 1e6:.2f}", f"{row['index_seconds'] * 1e3:.2f}",
          f"{row['peak_bytes'] / row['column_bytes']:.2f}", f"{row['windows_per_second']:.0f}"] for row in rows]))
    print(f"\nopen time grows with the number of frames to the power {growth:.2f}")
    if not arguments.dry_run:
        write_json(dated("dataset_growth", "json"), {
            "revision": revision(), "machine": machine(), "repetitions": arguments.repetitions,
            "seconds": arguments.seconds, "open_exponent": growth, "rows": rows,
        })


def measure(size, examples, arguments):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "walks"
        subprocess.run([examples / "write_walks", path, str(size)], check=True, stdout=subprocess.DEVNULL)
        def run(*what):
            output = subprocess.run([examples / "load_speed", path, *what], check=True, capture_output=True, text=True)
            return json.loads(output.stdout)
        opened = [run("open") for _ in range(arguments.repetitions)]
        drawn = [run("windows", str(arguments.seconds)) for _ in range(arguments.repetitions)]
    best = min(opened, key=lambda row: row["open_seconds"])
    windows = max(row["windows_per_second"] for row in drawn)
    peak = max(row["peak_bytes"] for row in opened + drawn)
    return {"size": size, **{key: best[key] for key in ("frames", "column_bytes", "open_seconds", "index_seconds")},
            "windows_per_second": windows, "peak_bytes": peak}


if __name__ == "__main__":
    main()
