#!/usr/bin/env python3
"""Our loader against lerobot's, side by side in one run: opening a dataset, windows of state and action, windows with cameras.

For every dataset, lerobot (PyPI) in every way of loading worth trying, and our release example `load_speed`, run in turn, each
in a process of its own, on the same random 16-step windows inside episodes; the best of several repetitions counts, and of
lerobot's ways the fastest. Ways:

    items   `dataset[i]` with `delta_timestamps`; it always decodes video, so that windows of state and action are taken
            from a copy of the dataset without its video features (the same parquet files)
    loader  the same through a DataLoader with two worker processes
    query   for state and action: only the two calls inside `dataset[i]` that fetch the columns
    slices  for state and action: past lerobot, slices of the Hugging Face table beneath; shown, but no way of lerobot's

Pictures are decoded with torchcodec and with pyav. Where the system has no FFmpeg for torchcodec, it gets the one that PyAV's
wheel brings. Opening is measured with a warm cache (lerobot converts the parquet files to Arrow once, and keeps that) and
after the imports. Memory is the peak of the resident set, lerobot's also less a baseline process
that only imports; worker processes are shown, but not counted.

lerobot gives float32 in [0, 1], ours the 8-bit pictures that the decoder gives. On a machine that does other things besides,
rates per CPU second say more than rates. Exit code 1 if a goal is missed.
"""

import argparse
import ctypes.util
import importlib.metadata
import importlib.util
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from measuring import ROOT, dated, machine, revision, shown, table, write_json

GOALS = {"windows": 50, "frame_windows": 3, "open": 10}
LENGTH = 16
CACHE = 512  # MiB of decoded frames in our cached measure; the others cache nothing.
PEER = Path(__file__).with_name("lerobot_peer.py")
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))


def main():
    arguments = parse_arguments()
    sets = [arguments.data / name for name in arguments.only]
    missing = [path.name for path in sets if not (path / "meta" / "info.json").exists()]
    if missing:
        print(f"skipped: {arguments.data} has no {', '.join(missing)}; give the folder with --data")
        return 0
    if importlib.util.find_spec("lerobot") is None:
        sys.exit(
            "error: the peer is not installed\n"
            "hint: python3 -m venv target/lerobot && target/lerobot/bin/pip install lerobot==0.4.4, "
            "then run this script with target/lerobot/bin/python"
        )
    if not arguments.peer_only and not os.access(arguments.binary, os.X_OK):
        sys.exit(f"error: no program at {shown(arguments.binary)}\n"
                 "hint: cargo build --release -p dataset --example load_speed, or give --binary or --peer-only")
    with tempfile.TemporaryDirectory() as folder:
        environment = peer_environment(Path(folder))
        rows = [compare(path, Path(folder), environment, arguments) for path in sets]
    report(rows, arguments)
    if not arguments.dry_run:
        write_json(dated("compare_lerobot", "json"), {
            "peer": {name: importlib.metadata.version(name) for name in ("lerobot", "torch", "torchcodec", "av", "datasets")},
            "revision": revision(),
            "machine": machine(),
            "load_average": os.getloadavg(),
            "repetitions": arguments.repetitions,
            "seconds": arguments.seconds,
            "goals": GOALS,
            "rows": rows,
        })
    return 1 if any(row["missed"] for row in rows) else 0


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data",
                        help="folder with the datasets [default: ../shared/data beside the repository]")
    parser.add_argument("--only", nargs="+", default=["libero_goal", "libero_object"], help="the datasets")
    parser.add_argument("--binary", type=Path, default=TARGET / "release" / "examples" / "load_speed",
                        help="our example [default: target/release/examples/load_speed]")
    parser.add_argument("--plain-binary", type=Path,
                        help="the example built without `--features asm`, to have its pictures measured in the same run")
    parser.add_argument("--repetitions", type=int, default=3, help="runs of each side; the best counts [default: 3]")
    parser.add_argument("--seconds", type=float, default=4, help="how long each of lerobot's ways runs [default: 4]")
    parser.add_argument("--peer-only", action="store_true", help="only lerobot's side")
    parser.add_argument("--dry-run", action="store_true", help="write no result file")
    return parser.parse_args()


def ways(dataset, stripped, seconds):
    """All of lerobot's ways of loading: what is measured, a name, and the task for the peer's process."""
    common = {"length": LENGTH, "seed": 0, "seconds": seconds}
    columns = {**common, "way": "windows", "root": str(stripped), "warm_up": 20, "torch_threads": 1}
    yield "baseline", "baseline", {"way": "baseline"}
    yield "open", "open", {"way": "open", "root": str(dataset)}
    yield "windows", "items", {**columns, "method": "items"}
    yield "windows", "loader", {**columns, "method": "loader", "workers": 2, "batch": 32, "warm_up": 8}
    yield "windows", "query", {**columns, "method": "query"}
    yield "by_hand", "slices", {**columns, "method": "slices"}
    for backend in ("torchcodec", "pyav"):
        frames = {**common, "way": "frame_windows", "root": str(dataset), "backend": backend}
        for threads in (1, 2):
            name = f"{backend} items, {threads} torch threads"
            yield "frame_windows", name, {**frames, "method": "items", "torch_threads": threads, "warm_up": 4}
        loader = {"method": "loader", "workers": 2, "batch": 4, "torch_threads": 1, "warm_up": 8}
        yield "frame_windows", f"{backend} loader", {**frames, **loader}


def compare(dataset, folder, environment, arguments):
    """One dataset."""
    stripped = without_video(dataset, folder / f"{dataset.name}-columns")
    tasks = list(ways(dataset, stripped, arguments.seconds))
    run_peer(dict(tasks[1][2]), environment)  # Fills the cache of the parquet files.
    run_peer({**tasks[1][2], "root": str(stripped)}, environment)
    runs, ours, problems = {}, [], []
    for repetition in range(arguments.repetitions):
        print(f"{dataset.name}, repetition {repetition + 1} …", file=sys.stderr, flush=True)
        for kind, name, task in tasks:
            result = run_peer(task, environment)
            if "error" in result:
                problems.append(f"{name}: {result['error']}")
            else:
                runs.setdefault((kind, name), []).append(result)
        if not arguments.peer_only:
            ours.append(run_ours(arguments.binary, dataset, arguments.seconds))
            if arguments.plain_binary:
                plain = run_example(arguments.plain_binary, dataset, "pictures", arguments.seconds)
                ours[-1]["plain_frame_windows_per_second"] = plain["windows_per_second"]
    peer = {}
    for (kind, name), results in runs.items():
        best = {key: (max if key.startswith("per_") else min)(result[key] for result in results) for key in results[0]}
        peer.setdefault(kind, {})[name] = best
    row = {"dataset": dataset.name, "peer": peer, "problems": sorted(set(problems)), "missed": []}
    if ours:
        row["ours"] = {key: (max if "_per_" in key else min)(result[key] for result in ours) for key in ours[0]}
        judge(row)
    return row


def judge(row):
    """Puts the ratios of a dataset into its row, and the goals it misses."""
    peer, ours = row["peer"], row["ours"]
    base = peer["baseline"]["baseline"]["peak_bytes"]
    opened, (_, windows), (_, frames) = peer["open"]["open"], fastest(peer["windows"]), fastest(peer["frame_windows"])
    row["ratios"] = {
        "open": opened["first_seconds"] / ours["open_seconds"],
        "open_again": opened["again_seconds"] / ours["open_seconds"],
        "windows": ours["windows_per_second"] / windows["per_second"],
        "windows_by_hand": ours["windows_per_second"] / peer["by_hand"]["slices"]["per_second"],
        "frame_windows": ours["frame_windows_per_second"] / frames["per_second"],
        "frame_windows_per_cpu_second": ours["frame_windows_per_cpu_second"] / max(
            result["per_cpu_second"] for result in peer["frame_windows"].values()
        ),
        "frame_windows_cached": ours["frame_windows_per_second_cached"] / frames["per_second"],
        "open_memory": ours["open_peak_bytes"] / opened["first_peak_bytes"],
        "open_memory_less_baseline": ours["open_peak_bytes"] / max(opened["first_peak_bytes"] - base, 1e5),
        "frame_windows_memory": ours["frame_windows_peak_bytes"] / frames["peak_bytes"],
        "frame_windows_memory_less_baseline": ours["frame_windows_peak_bytes"] / max(frames["peak_bytes"] - base, 1e5),
    }
    if "plain_frame_windows_per_second" in ours:
        row["ratios"]["plain_frame_windows"] = ours["plain_frame_windows_per_second"] / frames["per_second"]
    row["missed"] = [name for name, goal in GOALS.items() if row["ratios"][name] < goal]


def fastest(results):
    """Name and figures of the fastest way."""
    return max(results.items(), key=lambda entry: entry[1]["per_second"])


def run_peer(task, environment):
    """Runs one of lerobot's ways in a process of its own."""
    command = [sys.executable, str(PEER), json.dumps(task)]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60 + 10 * task.get("seconds", 0))
    except subprocess.TimeoutExpired:
        return {"error": "took too long"}
    if done.returncode != 0:
        return {"error": (done.stderr.strip().splitlines() or ["no message"])[-1][:300]}
    return json.loads(done.stdout.splitlines()[-1])


def run_ours(binary, dataset, seconds):
    """Runs our example for each measure, in a process of its own; the figures are named as the ratios want them."""
    opened = run_example(binary, dataset, "open", seconds)
    columns = run_example(binary, dataset, "windows", seconds)
    frames = run_example(binary, dataset, "pictures", seconds)
    cached = run_example(binary, dataset, "pictures", seconds, CACHE)
    return {
        "open_seconds": opened["open_seconds"],
        "open_peak_bytes": opened["peak_bytes"],
        "column_bytes": opened["column_bytes"],
        "windows_per_second": columns["windows_per_second"],
        "windows_peak_bytes": columns["peak_bytes"],
        "frame_windows_per_second": frames["windows_per_second"],
        "frame_windows_per_cpu_second": frames["windows"] / frames["cpu_seconds"],
        "frame_windows_peak_bytes": frames["peak_bytes"],
        "frame_windows_per_second_cached": cached["windows_per_second"],
        "frame_windows_peak_bytes_cached": cached["peak_bytes"],
    }


def run_example(binary, dataset, measure, seconds, cache=0):
    """One measure of our example, with the CPU time of its whole process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [str(binary), str(dataset), measure, str(seconds), str(cache)]
    done = subprocess.run(command, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"error: {shown(binary)} {measure} failed: {done.stderr.strip()[-500:]}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {**json.loads(done.stdout), "cpu_seconds": cpu}


def without_video(dataset, out):
    """A copy of a dataset that says nothing of video; the parquet files are links."""
    info = json.loads((dataset / "meta" / "info.json").read_text())
    info["features"] = {name: feature for name, feature in info["features"].items() if feature["dtype"] != "video"}
    (out / "meta").mkdir(parents=True)
    (out / "meta" / "info.json").write_text(json.dumps(info))
    for part in ("data", "meta/episodes", "meta/stats.json", "meta/tasks.parquet"):
        (out / part).symlink_to((dataset / part).resolve())
    return out


def peer_environment(folder):
    """The environment of lerobot's processes: a cache of their own, and FFmpeg for torchcodec where the system has none."""
    environment = {**os.environ, "HF_HOME": str(folder / "cache"), "TOKENIZERS_PARALLELISM": "false"}
    wheel = Path(importlib.util.find_spec("av").submodule_search_locations[0]).parent / "av.libs"
    if ctypes.util.find_library("avcodec") is None and wheel.is_dir():
        links = folder / "ffmpeg"
        links.mkdir()
        for library in wheel.iterdir():
            if found := re.match(r"(lib(?:av|sw)\w+)-[0-9a-f]+\.so\.(\d+)", library.name):
                (links / f"{found[1]}.so.{found[2]}").symlink_to(library)
        environment["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [str(links), os.environ.get("LD_LIBRARY_PATH")]))
    return environment


def report(rows, arguments):
    """Prints what was measured, and how it compares."""
    lines = []
    for row in rows:
        for kind, results in row["peer"].items():
            for name, result in results.items():
                rate = f"{result['per_second']:.1f}/s" if "per_second" in result else ""
                if kind == "open":
                    rate = f"{result['first_seconds'] * 1e3:.0f} ms, again {result['again_seconds'] * 1e3:.0f} ms"
                peak = result.get("first_peak_bytes", result["peak_bytes"])
                per_cpu = f"{result['per_cpu_second']:.1f}" if "per_cpu_second" in result else ""
                workers = f"{result['worker_peak_bytes'] / 1e6:.0f}" if result.get("worker_peak_bytes") else ""
                lines.append([row["dataset"], kind, name, rate, per_cpu, f"{peak / 1e6:.0f}", workers])
    print(f"lerobot {importlib.metadata.version('lerobot')}, best of {arguments.repetitions},"
          f" load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    print(table(["dataset", "what", "way", "rate", "per CPU s", "MB", "workers' MB"], lines))
    for row in rows:
        for problem in row["problems"]:
            print(f"problem: {row['dataset']}: {problem}")
        if "ours" not in row:
            continue
        print(f"\n{row['dataset']}: ours")
        for key, value in row["ours"].items():
            print(f"  {key:<36} {value:,.4g}" if value < 1 else f"  {key:<36} {value:,.0f}")
        for name, ratio in row["ratios"].items():
            goal = f"  goal {GOALS[name]} {'MISSED' if name in row['missed'] else 'met'}" if name in GOALS else ""
            print(f"  ratio {name:<36} {ratio:.3g}{goal}")


if __name__ == "__main__":
    sys.exit(main())
