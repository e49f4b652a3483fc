"""Kills runs at random moments, resumes them, and compares everything that they leave with a run that was never stopped.

python tests/resume/kill_demo.py --binary target/release/refactor-vla --kills 20
python tests/resume/kill_demo.py --binary target/release/refactor-vla --kills 20 --runs 4 --jobs 2
python tests/resume/kill_demo.py --binary target/debug/refactor-vla --kills 6 --runs 1 -- demo --set cycle.iterations=1

The kills are spread over `--runs` runs, one for each unless that is said. A run gets SIGKILL at random shares of the time
that an unbroken one takes, is resumed after each, and at last goes to its end. Then the library, all figures and the bytes of
all weights are compared. With `--jobs` several go on at once, and as many unbroken ones before them, so that the time is
measured under the same load. Nothing but the Python standard library is needed. Exit code 1 if anything differs or fails;
what differs is kept then.
"""

import argparse
import hashlib
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# What is measured by a clock, and so differs.
CLOCKS = ("per_second", "seconds")
SKIPPED = ("time.json", "report.json", "report.html")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--kills", type=int, default=20, help="of all runs together (default: 20)")
    parser.add_argument("--runs", type=int, help="that the kills are spread over (default: one for each kill)")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time (default: 1)")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--json", type=Path, help="write what was found")
    parser.add_argument("arguments", nargs="*", help="of the command, after --; without any it is `demo`")
    options = parser.parse_args()
    if options.kills < 1:
        parser.error(f"--kills is {options.kills}, wanted 1 or more")
    if options.runs is None:
        options.runs = options.kills
    if not 1 <= options.runs <= options.kills:
        parser.error(f"--runs is {options.runs}, wanted 1 to {options.kills}: each run is killed at least once")
    if options.jobs < 1:
        parser.error(f"--jobs is {options.jobs}, wanted 1 or more")
    if not Path(options.binary).is_file():
        parser.error(f"there is no program `{options.binary}`; `cargo build --release` makes it")
    return options


class Failed(Exception):
    """A run that ended with an error."""


class Runs:
    """Starts runs of one command in directories of one folder."""

    def __init__(self, options, folder):
        self.binary, self.arguments, self.folder = options.binary, options.arguments or ["demo"], folder

    def command(self, out):
        resume = ["--resume"] if out.exists() else []
        return [self.binary, *self.arguments, "--out", str(out), *resume]

    def whole(self, out):
        """Goes to the end, from wherever it is. The seconds that took."""
        start = time.monotonic()
        done = subprocess.run(self.command(out), capture_output=True, text=True)
        if done.returncode != 0:
            raise Failed(f"`{out.name}` failed with {done.returncode}:\n{done.stderr[-4000:]}")
        return time.monotonic() - start

    def killed(self, out, seconds):
        """Whether it was still running when it was killed."""
        process = subprocess.Popen(self.command(out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(seconds)
            return False
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            return True

    def trial(self, number, moments, took, wanted):
        """A run that is killed at each of the moments, shares of `took`, and compared when it is done."""
        out, kills, before = self.folder / f"run-{number}", 0, 0.0
        for moment in moments:
            kills += self.killed(out, (moment - before) * took)
            before = moment
        found = {"moments": [round(moment, 3) for moment in moments], "kills": kills}
        try:
            self.whole(out)
        except Failed as failure:
            return {**found, "differences": [], "failure": str(failure)}
        found["differences"] = differences(wanted, contents(out))
        if not found["differences"]:
            shutil.rmtree(out)
        return found


def lines(path):
    """Lines of metrics without what clocks say."""
    read = (json.loads(line) for line in path.read_text().splitlines())
    return json.dumps([{key: value for key, value in line.items() if key not in CLOCKS} for line in read])


def contents(out):
    found = {}
    for path in sorted(out.rglob("*")):
        name = str(path.relative_to(out))
        if not path.is_file() or name in SKIPPED or "checkpoint" in name or "tfevents" in name:
            continue
        if path.suffix == ".lock" or path.name.startswith("."):
            continue
        data = lines(path).encode() if path.name == "metrics.jsonl" else path.read_bytes()
        found[name] = hashlib.sha256(data).hexdigest()
    return found


def differences(one, other):
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def shares(kills, runs):
    """How often each run is killed: as evenly as can be, `kills` in all."""
    return [kills // runs + (run < kills % runs) for run in range(runs)]


def unbroken(runs, pool, jobs):
    """What runs leave that are never stopped, and the seconds that the slowest of `jobs` at once takes."""
    outs = [runs.folder / f"unbroken-{job}" for job in range(jobs)]
    took = max(pool.map(runs.whole, outs))
    wanted = contents(outs[0])
    for out in outs[1:]:
        if differences(wanted, contents(out)):
            raise Failed(f"two unbroken runs differ: {', '.join(differences(wanted, contents(out)))}")
        shutil.rmtree(out)
    return wanted, took


def told(number, trial):
    moments = ", ".join(f"{moment:.0%}" for moment in trial["moments"])
    result = "failed" if "failure" in trial else ", ".join(trial["differences"]) or "the same"
    print(f"{number + 1:2}: killed {trial['kills']} times (at {moments}): {result}", flush=True)
    if "failure" in trial:
        print(trial["failure"], flush=True)


def main():
    options = arguments()
    runs = Runs(options, Path(tempfile.mkdtemp(prefix="kill-demo-")))
    # All at once, so that the moments do not depend on which run ends first.
    generator = random.Random(options.seed)
    moments = [sorted(generator.random() for _ in range(kills)) for kills in shares(options.kills, options.runs)]
    with ThreadPoolExecutor(options.jobs) as pool:
        try:
            wanted, took = unbroken(runs, pool, min(options.jobs, options.runs))
        except Failed as failure:
            sys.exit(f"{failure}\nkept: {runs.folder}")
        weights = sum(name.endswith(".safetensors") for name in wanted)
        print(f"unbroken: {took:.0f} s, {len(wanted)} files, {weights} of them weights", flush=True)
        numbers = range(options.runs)
        trials = []
        for trial in pool.map(lambda number: runs.trial(number, moments[number], took, wanted), numbers):
            told(len(trials), trial)
            trials.append(trial)
    bad = [trial for trial in trials if trial["differences"] or "failure" in trial]
    if options.json:
        found = {"files": len(wanted), "weights": weights, "jobs": options.jobs, "trials": trials}
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    kills = sum(trial["kills"] for trial in trials)
    print(f"{len(trials) - len(bad)} of {len(trials)} ended as the unbroken run, after {kills} kills")
    if bad:
        sys.exit(f"kept: {runs.folder}")
    shutil.rmtree(runs.folder)


if __name__ == "__main__":
    main()
